package tools

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// shells are the paths of static shells.
type shells struct{ busybox, bash string }

// debianBusybox returns the path of the static busybox in Debian's package.
func debianBusybox(ctx context.Context, c *cache) (string, error) {
	return debianProgram(ctx, c, "busybox", "bin/busybox")
}

// debianProgram returns the path of a static program in the Debian package with the name name +
// "-static". It unpacks the package and does not install it, so that the programs of the host do
// not change. path is the path of the program in the package.
func debianProgram(ctx context.Context, c *cache, name, path string) (string, error) {
	codename, err := codename()
	if err != nil {
		return "", err
	}
	dir, err := c.ensureEntry(name+"-"+codename, func(dir string) error {
		if _, err := unpackPackages(ctx, dir, name+"-static"); err != nil {
			return fmt.Errorf("downloading the Debian package %s-static: %w", name, err)
		}
		return nil
	})
	return filepath.Join(dir, path), err
}

// debianShells locks the cache with stackLock and returns Debian's shells. Callers may hold
// kubernetesLock.
func debianShells(ctx context.Context, log *slog.Logger) (s shells, err error) {
	c, err := openCache(log, stackLock)
	if err != nil {
		return s, err
	}
	if err := c.lock(ctx); err != nil {
		return s, err
	}
	defer c.unlock()
	if s.busybox, err = debianBusybox(ctx, c); err != nil {
		return s, err
	}
	s.bash, err = debianProgram(ctx, c, "bash", "bin/bash-static")
	return s, err
}

// busyboxImage returns a root file system with busybox, a link for each of its commands in
// /bin, and the files in /etc that programs need.
func busyboxImage(ctx context.Context, busybox string) (v1.Image, error) {
	files, err := busyboxFiles(ctx, busybox)
	if err != nil {
		return nil, err
	}
	return newImage(files, v1.Config{Env: []string{"PATH=/bin"}, Cmd: []string{"sh"}})
}

// Users and groups of every image with busybox.
const (
	passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"
	group  = "root:x:0:\nnobody:x:65534:\n"
)

// busyboxFiles returns the files of an image with busybox. The slice has no spare capacity, so that
// several images can append to it.
func busyboxFiles(ctx context.Context, busybox string) ([]file, error) {
	data, err := os.ReadFile(busybox)
	if err != nil {
		return nil, fmt.Errorf("reading busybox: %w", err)
	}
	commands, err := run(ctx, "/", nil, busybox, "--list")
	if err != nil {
		return nil, err
	}
	files := []file{
		{name: "bin/", mode: 0o755},
		{name: "bin/busybox", mode: 0o755, data: data},
		{name: "etc/", mode: 0o755},
		{name: "etc/passwd", mode: 0o644, data: []byte(passwd)},
		{name: "etc/group", mode: 0o644, data: []byte(group)},
		{name: "root/", mode: 0o700},
		{name: "tmp/", mode: 0o1777},
	}
	for _, command := range strings.Fields(string(commands)) {
		if command != "busybox" {
			files = append(files, file{name: "bin/" + command, mode: 0o777, link: "busybox"})
		}
	}
	return slices.Clip(files), nil
}
