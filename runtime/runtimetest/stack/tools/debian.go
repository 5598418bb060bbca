package tools

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// debianRuntime returns a copy of set that contains the containerd and runc of Debian.
func debianRuntime(ctx context.Context, c *cache, set Set) (Set, error) {
	codename, err := codename()
	if err != nil {
		return Set{}, err
	}
	dir, err := c.ensureEntry("debian-"+codename, func(dir string) error {
		files, err := unpackPackages(ctx, dir, "containerd", "runc")
		if err != nil {
			return fmt.Errorf("downloading the Debian packages containerd and runc: %w", err)
		}
		v := Versions{CNI: set.Versions.CNI}
		for _, f := range files {
			switch f.pkg {
			case "containerd":
				v.Containerd = f.version
			case "runc":
				v.Runc = f.version
			}
		}
		return writeVersions(dir, v)
	})
	if err != nil {
		return Set{}, err
	}
	set.Flavor = Debian
	set.Containerd = filepath.Join(dir, "usr/bin/containerd")
	set.Ctr = filepath.Join(dir, "usr/bin/ctr")
	set.Runc = filepath.Join(dir, "usr/sbin/runc")
	set.Versions, err = readVersions(dir)
	return set, err
}

// codename returns the name of the Debian release, like "bookworm".
func codename() (string, error) {
	f, err := os.Open("/etc/os-release")
	if err != nil {
		return "", fmt.Errorf("finding the name of the Debian release: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "VERSION_CODENAME="); ok {
			return strings.Trim(name, `"`), nil
		}
	}
	return "", fmt.Errorf("finding the name of the Debian release: /etc/os-release has no VERSION_CODENAME")
}
