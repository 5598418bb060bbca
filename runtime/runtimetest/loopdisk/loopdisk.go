// Package loopdisk creates small file systems in files, for tests that fill or damage a disk.
package loopdisk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Create creates an ext4 file system with the given number of bytes in a sparse file. flags are
// additional flags of mkfs.ext4.
func Create(image string, size int64, flags ...string) error {
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, size)); err != nil {
		return err
	}
	return run("mkfs.ext4", append(flags, "-q", image)...)
}

// Mount mounts the file system in image on dir. options are mount options, and may be empty. The
// kernel releases the loop device when the file system is unmounted.
func Mount(image, dir string, options ...string) error {
	// With -n, mount writes nothing to /run, which the tests may share with the host.
	return run("mount", "-n", "-o", strings.Join(append([]string{"loop"}, options...), ","), image, dir)
}

func run(program string, args ...string) error {
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, out)
	}
	return nil
}
