// Package tools provides the parts of a private container runtime: the programs (containerd,
// its shim, ctr, runc and the CNI plugins) and the test images. The programs are built from the
// module testdata/stack, or are those of Debian's packages for the oldest supported versions.
// CRI-O must be installed by the user. The images are built from testdata/images and Debian's
// busybox-static.
//
//	<user cache>/podd-stack/
//		lock                 held while anything below is being built
//		lock-kubernetes      the same for the programs of Kubernetes
//		containerd-<hash>/   built programs; the hash covers go.mod, go.sum, Go
//		debian-<codename>/   Debian's containerd and runc, unpacked
//		busybox-<codename>/  busybox-static, unpacked
//		images-<hash>/       images.tar
//		controlplane-<hash>/ etcd, the programs of Kubernetes
//		conformance-<hash>/  Kubernetes' conformance suite and its images
//		disk-<hash>/         the disk of the virtual machine, its kernel
//		repository-<codename>/  Debian's containerd and CNI plugins, for apt
//
// Everything is built in a temporary directory that is then renamed. Therefore existing entries are
// complete and are reused. Missing Debian packages of runRequirements and buildRequirements are
// installed into the system. CRI-O also needs the packages of crioRequirements, EnsureDisk those of
// vmRequirements, and EnsureBrowser a package of Chromium. No other packages are installed into the
// system.
package tools

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// Flavor selects the container runtime.
type Flavor string

const (
	// Pinned is the containerd and runc of testdata/stack/go.mod.
	Pinned Flavor = "containerd"
	// Debian is the containerd 1.6 and runc 1.1 of Debian 12.
	Debian Flavor = "debian"
	// CRIO is the CRI-O of $CRIO_DIR or the PATH, with the pinned runc.
	CRIO Flavor = "crio"
)

// Flavors returns the flavors for tests that run on every runtime. If $RUNTIME is set, this is
// only the flavor in $RUNTIME. Otherwise, these are both containerds and, if it is installed,
// CRI-O.
func Flavors() []Flavor {
	if f := os.Getenv("RUNTIME"); f != "" {
		return []Flavor{Flavor(f)}
	}
	flavors := []Flavor{Pinned, Debian}
	_, _, err := findCRIO()
	if err == nil || os.Getenv(crioDirEnv) != "" { // if CRI-O is configured but not found, Ensure reports the error
		flavors = append(flavors, CRIO)
	}
	return flavors
}

// Options configure Ensure.
type Options struct {
	Flavor Flavor       // "" means Pinned
	Log    *slog.Logger // receives a message about each step that is slow or changes the host; nil discards messages
}

// A Set contains the paths of the programs and images. All paths are absolute.
type Set struct {
	Flavor     Flavor
	Containerd string // the shim and ctr are in the same directory
	Ctr        string
	CRIO       string // used instead of Containerd, together with Pinns, Conmon and Skopeo
	Pinns      string // pins namespaces
	Conmon     string // monitors a container
	Skopeo     string // copies images
	Runc       string
	CNI        string // the directory of the CNI plugins
	Images     string // a tarball with all of ImageNames
	Versions   Versions

	ProgramsTook time.Duration `json:"-"` // time that Ensure spent on programs
	ImagesTook   time.Duration `json:"-"` // time that Ensure spent on images
}

// Versions are version numbers without a leading v.
type Versions struct{ Containerd, CRIO, Runc, CNI string }

// Ensure builds or finds the programs and images, and returns their paths. Several processes may
// call Ensure concurrently: one builds, and the others wait.
func Ensure(ctx context.Context, o Options) (Set, error) {
	if o.Flavor == "" {
		o.Flavor = Pinned
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if file := os.Getenv(ToolSetFileEnv); file != "" {
		return readGivenSet(file, o.Flavor)
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
	set, err := ensurePrograms(ctx, c, root, o.Flavor)
	if err != nil {
		return Set{}, err
	}
	set.ProgramsTook = time.Since(begin)

	begin = time.Now()
	dir, err := ensureImages(ctx, c, root)
	if err != nil {
		return Set{}, err
	}
	set.Images = filepath.Join(dir, imagesTar)
	set.ImagesTook = time.Since(begin)
	return set, nil
}

// ensurePrograms finds or builds the programs of a flavor. All flavors have the pinned CNI plugins,
// and differ only in the runtime.
func ensurePrograms(ctx context.Context, c *cache, root string, flavor Flavor) (Set, error) {
	if err := prepareHost(ctx, c.log, runRequirements); err != nil {
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
	case CRIO:
		return crioRuntime(ctx, c, pinned)
	}
	return Set{}, fmt.Errorf("finding the programs of runtime %q: unknown runtime; must be %q, %q or %q", flavor, Pinned, Debian, CRIO)
}
