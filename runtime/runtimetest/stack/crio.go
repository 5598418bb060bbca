package stack

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/stack/tools"
)

// isCRIO reports whether the stack's runtime is CRI-O. Otherwise the runtime is containerd.
func (s *Stack) isCRIO() bool { return s.Tools.Flavor == tools.CRIO }

// storageOption prevents CRI-O's storage from bind-mounting its root directory on itself.
const storageOption = "overlay.skip_mount_home=true"

// acceptAny is a signature policy that accepts unsigned images.
const acceptAny = `{"default": [{"type": "insecureAcceptAnything"}]}`

// plainHTTPRegistries makes CRI-O use plain HTTP for the registries of tests. containerd does so by
// default.
const plainHTTPRegistries = "[[registry]]\nlocation = \"127.0.0.1\"\ninsecure = true\n"

// configureCRIO writes the files that CRI-O needs in addition to its configuration.
func (s *Stack) configureCRIO() error {
	registries := filepath.Join(s.crioHome(), ".config/containers/registries.conf")
	if err := os.MkdirAll(filepath.Dir(registries), 0o700); err != nil {
		return fmt.Errorf("creating the stack's directories: %w", err)
	}
	for file, text := range map[string]string{s.policyFile(): acceptAny, registries: plainHTTPRegistries} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing the configuration of the runtime: %w", err)
		}
	}
	if !s.mustWrapRunc() {
		return nil
	}
	if err := s.render(s.crioRunc(), runcSh); err != nil {
		return err
	}
	if err := os.Chmod(s.crioRunc(), 0o700); err != nil {
		return fmt.Errorf("writing the configuration of the runtime: %w", err)
	}
	return nil
}

// crioRunc returns the path that CRI-O's configuration contains for runc.
func (s *Stack) crioRunc() string {
	if s.mustWrapRunc() {
		return filepath.Join(s.privateDir(), "runc.sh")
	}
	return s.Tools.Runc
}

// mustWrapRunc reports whether CRI-O must use config/runc.sh. The script is necessary if root does
// not have the capability CAP_SYS_RESOURCE, because runc needs the capability without the script.
func (s *Stack) mustWrapRunc() bool {
	hasCapability, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_SYS_RESOURCE, 0, 0, 0)
	return err != nil || hasCapability == 0
}

func (s *Stack) policyFile() string { return filepath.Join(s.privateDir(), "policy.json") }

// crioHome returns CRI-O's home directory. Settings in it take precedence over /etc/containers.
func (s *Stack) crioHome() string { return filepath.Join(s.privateDir(), "home") }

// crioCommand returns the command that starts CRI-O. CRI-O's monitors (conmon) continue to run
// after CRI-O exits.
func (s *Stack) crioCommand() *exec.Cmd {
	cmd := exec.Command(s.Tools.CRIO, "--config", configIn(s.Dir, tools.CRIO), "--config-dir", filepath.Join(s.privateDir(), "conf.d"))
	cmd.Env = append(os.Environ(), "HOME="+s.crioHome(), "XDG_CONFIG_HOME="+filepath.Join(s.crioHome(), ".config"), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	return cmd
}

// copyImages copies the images of a tarball into CRI-O's storage. CRI-O rereads its storage
// after a change. skopeo and CRI-O also write to a cache of the host, /var/lib/containers/cache,
// which is not removed.
func (s *Stack) copyImages(ctx context.Context, path string) error {
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(path) })
	if err != nil {
		return fmt.Errorf("reading the images of %s: %w", path, err)
	}
	storage := s.Snapshotter + "@" + s.privateDir() + "/root+" + s.privateDir() + "/run"
	if s.Snapshotter == "overlay" {
		storage += ":" + storageOption
	}
	for _, image := range manifest {
		for _, ref := range image.RepoTags {
			cmd := exec.CommandContext(ctx, s.Tools.Skopeo, "--policy", s.policyFile(), "copy", "--quiet",
				"docker-archive:"+path+":"+ref, "containers-storage:["+storage+"]"+ref)
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("loading image %s of %s: %w: %s", ref, path, err, strings.TrimSpace(string(out)))
			}
		}
	}
	return nil
}
