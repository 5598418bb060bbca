package tools

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	containerdModule = "github.com/containerd/containerd/v2"
	runcModule       = "github.com/opencontainers/runc"
	pluginsModule    = "github.com/containernetworking/plugins"
)

// programsRecipe is part of the hash of the programs. Change it when the build flags in buildAll
// change.
const programsRecipe = "1"

// staticPackages lists the packages that are built without cgo. runcModule is built with cgo.
var staticPackages = []string{
	containerdModule + "/cmd/containerd",
	containerdModule + "/cmd/containerd-shim-runc-v2",
	containerdModule + "/cmd/ctr",
	pluginsModule + "/plugins/main/bridge",
	pluginsModule + "/plugins/main/loopback",
	pluginsModule + "/plugins/ipam/host-local",
	pluginsModule + "/plugins/meta/portmap",
}

// buildPinned builds the programs in the versions that the module requires.
func buildPinned(ctx context.Context, c *cache, module string) (Set, error) {
	hash, err := moduleHash(ctx, module)
	if err != nil {
		return Set{}, err
	}
	dir, err := c.ensureEntry("containerd-"+hash, func(dir string) error {
		c.log.Info("building containerd, runc and the CNI plugins; this takes a minute or two", "into", c.dir)
		if err := prepareHost(ctx, c.log, buildRequirements); err != nil {
			return err
		}
		v, err := pinnedVersions(ctx, module)
		if err != nil {
			return err
		}
		if err := buildAll(ctx, module, filepath.Join(dir, "bin"), v); err != nil {
			return fmt.Errorf("building containerd, runc and the CNI plugins: %w", err)
		}
		return writeVersions(dir, v)
	})
	if err != nil {
		return Set{}, err
	}
	bin := filepath.Join(dir, "bin")
	set := Set{
		Flavor:     Pinned,
		Containerd: filepath.Join(bin, "containerd"),
		Ctr:        filepath.Join(bin, "ctr"),
		Runc:       filepath.Join(bin, "runc"),
		CNI:        bin,
	}
	set.Versions, err = readVersions(dir)
	return set, err
}

// buildAll builds containerd, the CNI plugins and runc into the directory bin.
func buildAll(ctx context.Context, module, bin string, v Versions) error {
	// The build tags omit tracing and the snapshotters for btrfs, zfs and device mapper, which the
	// stack does not need.
	static := append([]string{"build", "-o", bin + "/",
		"-tags", "no_btrfs,no_zfs,no_devmapper,no_tracing",
		"-ldflags", "-s -w -X " + containerdModule + "/version.Version=" + v.Containerd +
			" -X " + pluginsModule + "/pkg/utils/buildversion.BuildVersion=v" + v.CNI,
	}, staticPackages...)
	if _, err := run(ctx, module, goEnv("0"), "go", static...); err != nil {
		return err
	}
	_, err := run(ctx, module, goEnv("1"), "go", "build", "-o", bin+"/",
		"-tags", "seccomp,netgo,osusergo,runc_nocriu", "-ldflags", "-s -w -extldflags -static", runcModule)
	return err
}

// goEnv returns the environment for builds of other projects. It is always the same, and its flags are
// those with which podd's tests compile the standard library, so that shared packages are compiled
// once. It omits debugging data, which saves a seventh of the time. The value of cgo is "0" or "1".
func goEnv(cgo string) []string {
	return []string{"CGO_ENABLED=" + cgo, "GOWORK=off", "GOFLAGS=-buildvcs=false -trimpath -gcflags=all=-dwarf=false"}
}

// moduleHash returns a hash of everything that affects the programs that are built from the module in
// the directory module and from its submodules, the modules in directories relative to it.
func moduleHash(ctx context.Context, module string, submodules ...string) (string, error) {
	parts := [][]byte{[]byte(programsRecipe)}
	for _, dir := range append([]string{"."}, submodules...) {
		for _, name := range []string{"go.mod", "go.sum"} {
			content, err := os.ReadFile(filepath.Join(module, dir, name))
			if err != nil {
				return "", fmt.Errorf("hashing the modules of the programs: %w", err)
			}
			parts = append(parts, content)
		}
	}
	version, err := run(ctx, module, nil, "go", "env", "GOVERSION", "GOARCH")
	if err != nil {
		return "", err
	}
	return hashParts(append(parts, version)...), nil
}

func pinnedVersions(ctx context.Context, module string) (Versions, error) {
	out, err := run(ctx, module, goEnv("0"), "go", "list", "-m", "-f", "{{.Version}}", containerdModule, runcModule, pluginsModule)
	if err != nil {
		return Versions{}, err
	}
	v := strings.Fields(string(out))
	if len(v) != 3 {
		return Versions{}, fmt.Errorf("reading the versions in %s/go.mod: got %q, want those of containerd, runc and the CNI plugins", module, v)
	}
	for i := range v {
		v[i] = strings.TrimPrefix(v[i], "v")
	}
	return Versions{Containerd: v[0], Runc: v[1], CNI: v[2]}, nil
}
