package tools

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// crioDirEnv is the environment variable with the directory of crio and pinns. If it is not set,
// they are looked up on the PATH. podd cannot install CRI-O itself, because CRI-O is neither in a
// module that can be built here nor in a package of Debian 12.
const crioDirEnv = "CRIO_DIR"

// crioRequirements lists the Debian packages that CRI-O needs: conmon monitors containers, skopeo
// loads images, and CRI-O is linked with libseccomp2.
var crioRequirements = []requirement{
	{[]string{"conmon"}, onPath("conmon")},
	{[]string{"skopeo"}, onPath("skopeo")},
	{[]string{"libseccomp2"}, func(context.Context) bool {
		found, err := filepath.Glob("/usr/lib/*/libseccomp.so.2")
		return err == nil && len(found) > 0
	}},
}

// crioRuntime returns a copy of set in which CRI-O replaces containerd.
func crioRuntime(ctx context.Context, c *cache, set Set) (Set, error) {
	crio, pinns, err := findCRIO()
	if err != nil {
		return Set{}, err
	}
	if err := prepareHost(ctx, c.log, crioRequirements); err != nil {
		return Set{}, err
	}
	set.Flavor, set.Containerd, set.Ctr, set.Versions.Containerd = CRIO, "", "", ""
	set.CRIO, set.Pinns = crio, pinns
	if set.Conmon, err = exec.LookPath("conmon"); err != nil {
		return Set{}, fmt.Errorf("finding conmon, the container monitor of CRI-O: %w", err)
	}
	if set.Skopeo, err = exec.LookPath("skopeo"); err != nil {
		return Set{}, fmt.Errorf("finding skopeo, which loads images into CRI-O: %w", err)
	}
	set.Versions.CRIO, err = crioVersion(ctx, crio)
	return set, err
}

// findCRIO returns the paths of crio and pinns, which are in the same directory.
func findCRIO() (crio, pinns string, err error) {
	name := "crio"
	if dir := os.Getenv(crioDirEnv); dir != "" {
		name = filepath.Join(dir, "crio")
	}
	if crio, err = exec.LookPath(name); err == nil {
		crio, err = filepath.Abs(crio)
	}
	if err == nil {
		pinns, err = exec.LookPath(filepath.Join(filepath.Dir(crio), "pinns"))
	}
	if err != nil {
		return "", "", fmt.Errorf("finding CRI-O: %w; set $%s to the directory that contains crio and pinns", err, crioDirEnv)
	}
	return crio, pinns, nil
}

// crioVersion returns the number in the first line of "crio version".
func crioVersion(ctx context.Context, crio string) (string, error) {
	out, err := run(ctx, "/", nil, crio, "--version")
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimPrefix(first, "crio version "), nil
}
