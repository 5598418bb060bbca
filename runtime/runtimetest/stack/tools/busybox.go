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

// debianBusybox returns the path of the static busybox in Debian's package. It unpacks the
// package and does not install it, so that the busybox of the host does not change.
func debianBusybox(ctx context.Context, c *cache) (string, error) {
	codename, err := codename()
	if err != nil {
		return "", err
	}
	dir, err := c.ensureEntry("busybox-"+codename, func(dir string) error {
		if _, err := unpackPackages(ctx, dir, "busybox-static"); err != nil {
			return fmt.Errorf("fetching Debian's busybox-static: %w", err)
		}
		return nil
	})
	return filepath.Join(dir, "bin", "busybox"), err
}

// debianBusyboxWithLock acquires the stack lock of the cache and calls debianBusybox. Callers may
// hold the other lock of the cache.
func debianBusyboxWithLock(ctx context.Context, log *slog.Logger) (string, error) {
	c, err := openCache(log, stackLock)
	if err != nil {
		return "", err
	}
	if err := c.lock(ctx); err != nil {
		return "", err
	}
	defer c.unlock()
	return debianBusybox(ctx, c)
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

// busyboxFiles returns a slice without spare capacity, so that several images can append to
// it.
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
