package stack

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// oldShimSockets is the directory in which the shims of containerd 1.6 listen.
	oldShimSockets = "/run/containerd/s"
	// cniResults is the directory in which libcni stores the results of attaching networks.
	cniResults = "/var/lib/cni/results"
)

// removeShared removes the stack's files from directories that all runtimes of a host share. Such
// files exist because containerd uses fixed paths for them. containerd itself removes the files of
// a pod when it removes the pod.
func (s *Stack) removeShared() error {
	errs := []error{s.removeCNIResults()}
	for id := range s.containerIDs() {
		err := os.Remove(s.oldShimSocket(id))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("removing the socket of a containerd shim: %w", err))
		}
	}
	return errors.Join(errs...)
}

// oldShimSocket returns the path of the socket of a sandbox's shim. No other containerd uses the
// path, because its name is a hash that includes the address of containerd (function SocketAddress
// of containerd).
func (s *Stack) oldShimSocket(id string) string {
	return filepath.Join(oldShimSockets, fmt.Sprintf("%x", sha256.Sum256([]byte(filepath.Join(s.Socket(), "k8s.io", id)))))
}

// removeCNIResults removes the CNI results of the stack's network. It also removes the results
// of the stack's sandboxes for the loopback network, which all stacks share.
func (s *Stack) removeCNIResults() error {
	results, err := filepath.Glob(filepath.Join(cniResults, "*"))
	errs := []error{err}
	ids := s.containerIDs()
	for _, path := range results {
		rest, own := strings.CutPrefix(filepath.Base(path), s.Reservation.Bridge()+"-")
		if !own {
			id, _, _ := strings.Cut(strings.TrimPrefix(rest, "cni-loopback-"), "-")
			own = ids[id]
		}
		if own {
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(errs...)
}
