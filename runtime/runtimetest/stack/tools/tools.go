// Package tools brings what a private container runtime consists of: the
// programs (containerd, its shim, ctr, runc and the CNI plugins) and the test
// images. The programs are built from the module testdata/stack, or taken
// from Debian's packages for the old end of what podd supports; the images
// are made on the spot from testdata/images and Debian's busybox-static.
//
//	<user cache>/podd-stack/
//		lock                 held while anything below is being made
//		lock-kubernetes      instead, for the programs of Kubernetes
//		containerd-<hash>/   built programs; the hash covers go.mod, go.sum, Go
//		debian-<codename>/   Debian's containerd and runc, unpacked
//		busybox-<codename>/  busybox-static, unpacked
//		images-<hash>/       images.tar
//		controlplane-<hash>/ etcd, the programs of Kubernetes
//		conformance-<hash>/  Kubernetes' conformance suite and its images
//		disk-<hash>/         the disk of the virtual machine, its kernel
//
// Everything is made in a directory of its own and renamed into place, so
// what exists is complete and a second run costs nothing. Nothing is put
// into the system but the Debian packages of toRun, toBuild and, for EnsureDisk,
// toVirtualize, if missing.
package tools

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// Flavor is which container runtime is meant.
type Flavor string

const (
	// Pinned is the containerd and runc of testdata/stack/go.mod.
	Pinned Flavor = "containerd"
	// Debian is the containerd 1.6 and runc 1.1 of Debian 12.
	Debian Flavor = "debian"
)

// Options says what Ensure brings.
type Options struct {
	Flavor Flavor       // "" means Pinned
	Log    *slog.Logger // told about slow or system-wide steps; nil discards
}

// Set is where the programs and images are. All paths are absolute.
type Set struct {
	Flavor     Flavor
	Containerd string // its shim and ctr lie beside it
	Ctr        string
	Runc       string
	CNI        string // the directory of the CNI plugins
	Images     string // a tarball with all of ImageNames
	Versions   Versions

	ProgramsTook time.Duration `json:"-"` // what Ensure spent on programs
	ImagesTook   time.Duration `json:"-"` // and on images
}

// Versions are version numbers without a leading v.
type Versions struct{ Containerd, Runc, CNI string }

// Ensure builds or finds everything and says where it is. Several processes
// may call it at once; one builds and the others wait for it.
func Ensure(ctx context.Context, o Options) (Set, error) {
	if o.Flavor == "" {
		o.Flavor = Pinned
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if file := os.Getenv(GivenEnv); file != "" {
		return given(file, o.Flavor)
	}
	root, err := moduleRoot()
	if err != nil {
		return Set{}, err
	}
	c, err := openCache(o.Log, stackLock)
	if err != nil {
		return Set{}, err
	}
	if err := c.lock(ctx); err != nil {
		return Set{}, err
	}
	defer c.unlock()

	begin := time.Now()
	set, err := programs(ctx, c, root, o.Flavor)
	if err != nil {
		return Set{}, err
	}
	set.ProgramsTook = time.Since(begin)

	begin = time.Now()
	dir, err := images(ctx, c, root)
	if err != nil {
		return Set{}, err
	}
	set.Images = filepath.Join(dir, imagesTar)
	set.ImagesTook = time.Since(begin)
	return set, nil
}

// programs finds or makes the programs of a flavor. The CNI plugins are the
// pinned ones in every flavor: the flavors differ in the runtime only.
func programs(ctx context.Context, c *cache, root string, flavor Flavor) (Set, error) {
	if err := prepareHost(ctx, c.log, toRun); err != nil {
		return Set{}, err
	}
	pinned, err := buildPinned(ctx, c, filepath.Join(root, "testdata", "stack"))
	if err != nil {
		return Set{}, err
	}
	switch flavor {
	case Pinned:
		return pinned, nil
	case Debian:
		return debianRuntime(ctx, c, pinned)
	}
	return Set{}, fmt.Errorf("finding the programs of runtime %q: only %q and %q are known", flavor, Pinned, Debian)
}
