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

// Disk contains the files from which a virtual machine boots. All paths are absolute.
type Disk struct {
	Image  string // sparse ext4 image; a machine that writes to it needs a copy
	Kernel string
	Initrd string
	Took   time.Duration // duration of EnsureDisk
}

// vmRequirements lists the Debian packages that create and run a virtual machine. None of
// them starts a service.
var vmRequirements = []requirement{
	{[]string{"qemu-system-x86"}, onPath("qemu-system-x86_64")},
	{[]string{"mmdebstrap"}, onPath("mmdebstrap")},
	{[]string{"e2fsprogs"}, onPath("mkfs.ext4")},
	{[]string{"xfsprogs"}, onPath("mkfs.xfs")},
}

// diskPackages lists the packages for a Debian that boots and can run a container runtime. The steps
// node-resize and node-pod-resources of make vm need crun.
const diskPackages = "systemd-sysv,dbus,udev,kmod,linux-image-cloud-amd64,crun,nftables,iproute2,procps,nfs-kernel-server,nfs-common,open-iscsi,multipath-tools,e2fsprogs,selinux-policy-default"

// diskSize is the size of the disk in the machine. The image on the host needs less space, because
// it is sparse.
const diskSize = "6G"

// diskRecipe is part of the hash of the disk. Change it when the build of the disk changes.
const diskRecipe = "1"

// diskFiles contains the files that are copied to the root file system of the virtual machine.
//
//go:embed disk
var diskFiles embed.FS

// EnsureDisk returns the disk of a virtual machine, and creates it if it does not exist. The
// disk contains Debian in the host's release, with systemd as init and pure cgroup v2. A shell
// listens on the virtio port "podd".
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
	if err := prepareHost(ctx, log, vmRequirements); err != nil {
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
	dir, err := c.ensureEntry("disk-"+hash, func(dir string) error {
		log.Info("creating the disk of the virtual machine; this takes two or three minutes", "into", c.dir)
		return makeDisk(ctx, dir, release)
	})
	return Disk{
		Image: filepath.Join(dir, "image"), Kernel: filepath.Join(dir, "kernel"), Initrd: filepath.Join(dir, "initrd"),
		Took: time.Since(begin),
	}, err
}

func makeDisk(ctx context.Context, dir, release string) error {
	tree := filepath.Join(dir, "tree")
	// If this process is killed, all processes in the namespaces are killed and the namespaces are
	// removed. Therefore no mount of the host remains in the tree, which is removed later.
	_, err := run(ctx, dir, []string{"LC_ALL=C"}, "setpriv", "--pdeathsig", "KILL",
		"unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "mmdebstrap", "--mode=root", "--variant=apt", "--include="+diskPackages,
		"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
		release, tree)
	if err != nil {
		return fmt.Errorf("creating the root file system of the virtual machine: %w", err)
	}
	if err := copyFiles(tree); err != nil {
		return fmt.Errorf("copying files to the root file system of the virtual machine: %w", err)
	}
	for source, target := range map[string]string{"vmlinuz": "kernel", "initrd.img": "initrd"} {
		if err := moveMatch(filepath.Join(tree, "boot", source+"-*"), filepath.Join(dir, target)); err != nil {
			return fmt.Errorf("moving the kernel and the initrd out of the root file system of the virtual machine: %w", err)
		}
	}
	if err := MakeImage(ctx, "system", tree, filepath.Join(dir, "image"), diskSize); err != nil {
		return err
	}
	return os.RemoveAll(tree)
}

// MakeImage creates a sparse ext4 image. The image contains the files of sourceDir.
func MakeImage(ctx context.Context, label, sourceDir, image, size string) error {
	if _, err := run(ctx, "/", nil, "mkfs.ext4", "-q", "-F", "-L", label, "-d", sourceDir, image, size); err != nil {
		return fmt.Errorf("creating the disk image %s: %w", image, err)
	}
	return nil
}

// MakeXFS creates an image of size bytes with an empty XFS file system.
func MakeXFS(ctx context.Context, image string, size int64) error {
	return makeEmpty(ctx, image, size, "mkfs.xfs", "-q", "-f")
}

// MakeExt4 creates an image of size bytes with an empty ext4 file system.
func MakeExt4(ctx context.Context, image string, size int64) error {
	return makeEmpty(ctx, image, size, "mkfs.ext4", "-q", "-F")
}

// makeEmpty creates a sparse image of size bytes and runs program. The last argument of the program
// is the path of the image.
func makeEmpty(ctx context.Context, image string, size int64, program ...string) error {
	err := os.WriteFile(image, nil, 0o600)
	if err == nil {
		err = os.Truncate(image, size)
	}
	if err == nil {
		_, err = run(ctx, "/", nil, program[0], append(program[1:], image)...)
	}
	if err != nil {
		return fmt.Errorf("creating the disk image %s: %w", image, err)
	}
	return nil
}

// copyFiles copies diskFiles to the tree. A file with a name that ends in ".link" becomes a
// symbolic link, whose target is the content of the file.
func copyFiles(tree string) error {
	return fs.WalkDir(diskFiles, "disk", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		newPath := filepath.Join(tree, strings.TrimPrefix(path, "disk"))
		if d.IsDir() {
			return os.MkdirAll(newPath, 0o755)
		}
		data, err := diskFiles.ReadFile(path)
		if err != nil {
			return err
		}
		if link, ok := strings.CutSuffix(newPath, ".link"); ok {
			_ = os.Remove(link) // remove the file that a Debian package has created, if there is one
			return os.Symlink(strings.TrimSpace(string(data)), link)
		}
		return os.WriteFile(newPath, data, 0o644)
	})
}

// moveMatch renames the only file that matches pattern. newPath is the new path of the file.
func moveMatch(pattern, newPath string) error {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) != 1 {
		return fmt.Errorf("finding %s: got the files %v, want one file: %w", pattern, files, err)
	}
	return os.Rename(files[0], newPath)
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
		return "", fmt.Errorf("hashing the sources of the disk of the virtual machine: %w", err)
	}
	return hashParts(parts...), nil
}
