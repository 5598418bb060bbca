package tools

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Disk is what a virtual machine boots from. All paths are absolute.
type Disk struct {
	Image  string // ext4, sparse; a machine that writes needs a copy
	Kernel string
	Initrd string
	Took   time.Duration // what EnsureDisk spent
}

// toVirtualize are the Debian packages that make and run a virtual machine.
// None of them starts a service.
var toVirtualize = []need{
	{[]string{"qemu-system-x86"}, onPath("qemu-system-x86_64")},
	{[]string{"mmdebstrap"}, onPath("mmdebstrap")},
	{[]string{"e2fsprogs"}, onPath("mkfs.ext4")},
}

// diskPackages make a Debian that boots, and has what a container runtime needs
// of its host.
const diskPackages = "systemd-sysv,dbus,udev,kmod,linux-image-cloud-amd64,nftables,iproute2,procps,nfs-kernel-server,nfs-common"

// diskSize is what the machine sees; on the host the image has holes.
const diskSize = "6G"

// diskRecipe is part of the hash of the disk: change it with how it is made.
const diskRecipe = "1"

// diskFiles are laid over the tree.
//
//go:embed disk
var diskFiles embed.FS

// EnsureDisk makes or finds the disk of a virtual machine: Debian of the
// host's release with systemd as init and cgroup v2 alone. A shell listens on
// the virtio port "podd".
func EnsureDisk(ctx context.Context, log *slog.Logger) (Disk, error) {
	begin := time.Now()
	c, err := openCache(log, stackLock)
	if err != nil {
		return Disk{}, err
	}
	if err := c.lock(ctx); err != nil {
		return Disk{}, err
	}
	defer c.unlock()
	if err := prepareHost(ctx, log, toVirtualize); err != nil {
		return Disk{}, err
	}
	release, err := codename()
	if err != nil {
		return Disk{}, err
	}
	hash, err := diskHash(release)
	if err != nil {
		return Disk{}, err
	}
	dir, err := c.entry("disk-"+hash, func(dir string) error {
		log.Info("making the disk of the virtual machine; this takes two or three minutes", "into", c.dir)
		return makeDisk(ctx, dir, release)
	})
	return Disk{
		Image: filepath.Join(dir, "image"), Kernel: filepath.Join(dir, "kernel"), Initrd: filepath.Join(dir, "initrd"),
		Took: time.Since(begin),
	}, err
}

func makeDisk(ctx context.Context, dir, release string) error {
	tree := filepath.Join(dir, "tree")
	// Namespaces of its own: all of it ends when this process is killed, and then
	// nothing of the host is mounted in the tree that is to be removed.
	_, err := run(ctx, dir, []string{"LC_ALL=C"}, "setpriv", "--pdeathsig", "KILL",
		"unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "mmdebstrap", "--mode=root", "--variant=apt", "--include="+diskPackages,
		"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
		release, tree)
	if err != nil {
		return fmt.Errorf("making the tree of the virtual machine: %w", err)
	}
	if err := layOver(tree); err != nil {
		return fmt.Errorf("completing the tree of the virtual machine: %w", err)
	}
	for from, to := range map[string]string{"vmlinuz": "kernel", "initrd.img": "initrd"} {
		if err := moveOne(filepath.Join(tree, "boot", from+"-*"), filepath.Join(dir, to)); err != nil {
			return fmt.Errorf("taking the kernel of the virtual machine: %w", err)
		}
	}
	if err := MakeImage(ctx, "system", tree, filepath.Join(dir, "image"), diskSize); err != nil {
		return err
	}
	return os.RemoveAll(tree)
}

// MakeImage makes an ext4 image of a directory, with holes where it is empty.
func MakeImage(ctx context.Context, label, from, image, size string) error {
	if _, err := run(ctx, "/", nil, "mkfs.ext4", "-q", "-F", "-L", label, "-d", from, image, size); err != nil {
		return fmt.Errorf("making the disk image %s: %w", image, err)
	}
	return nil
}

// layOver copies diskFiles to the tree. A file whose name ends in ".link" is a
// symbolic link to what it holds.
func layOver(tree string) error {
	return fs.WalkDir(diskFiles, "disk", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(tree, strings.TrimPrefix(path, "disk"))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		data, err := diskFiles.ReadFile(path)
		if err != nil {
			return err
		}
		if link, ok := strings.CutSuffix(to, ".link"); ok {
			_ = os.Remove(link) // Debian's own
			return os.Symlink(strings.TrimSpace(string(data)), link)
		}
		return os.WriteFile(to, data, 0o644)
	})
}

func moveOne(pattern, to string) error {
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%s: got %v, want one file: %w", pattern, found, err)
	}
	return os.Rename(found[0], to)
}

func diskHash(release string) (string, error) {
	parts := [][]byte{[]byte(diskRecipe), []byte(release), []byte(diskPackages), []byte(diskSize)}
	err := fs.WalkDir(diskFiles, "disk", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := diskFiles.ReadFile(path)
		parts = append(parts, []byte(path), data)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("hashing the disk of the virtual machine: %w", err)
	}
	return digest(parts...), nil
}
