package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Leftovers contains the numbers of objects that pods have created and not removed. A test expects
// the zero value after its pods were removed. The bridge is not counted, because the CNI plugins
// keep it for the next pod.
type Leftovers struct {
	Sandboxes, Containers int // as listed by CRI, if the runtime runs
	Shims                 int // shims of containerd, or monitors of CRI-O
	Mounts                int // below Dir, except network namespaces and images that CRI-O keeps mounted
	NetNS                 int
	Cgroups               int
	Rules                 int // nft rules and elements with addresses of the stack's subnets
	Addresses             int // IP addresses that the CNI plugins have reserved
}

func (l Leftovers) String() string {
	return fmt.Sprintf("%d sandboxes, %d containers, %d shims, %d mounts, %d network namespaces, %d cgroups, %d nft rules, %d addresses",
		l.Sandboxes, l.Containers, l.Shims, l.Mounts, l.NetNS, l.Cgroups, l.Rules, l.Addresses)
}

// Leftovers counts the leftovers on the host. The counts may include objects that are being
// removed. Therefore a test must call Leftovers until the result is zero.
func (s *Stack) Leftovers(ctx context.Context) (Leftovers, error) {
	var l Leftovers
	var errs [4]error
	if s.IsRunning() {
		l.Sandboxes, l.Containers, errs[0] = s.countInCRI(ctx)
	}
	l.Shims, errs[1] = s.countShims()
	mounts, err := mountsBelow(s.Dir)
	errs[2] = err
	images := s.imageLayers()
	for _, m := range mounts {
		switch {
		case filepath.Base(filepath.Dir(m)) == "netns":
			l.NetNS++
		case filepath.Base(m) == "merged" && images[filepath.Base(filepath.Dir(m))]:
		default:
			l.Mounts++
		}
	}
	cgroups, err := findCgroups(s.matchOwnCgroups())
	l.Cgroups, errs[3] = len(cgroups), err
	l.Rules = len(listOwnRules(ctx, s.subnets())) + len(listOwnElements(ctx, s.subnets()))
	l.Addresses = s.countAddresses()
	return l, errors.Join(errs[:]...)
}

// imageLayers returns the top layers of CRI-O's images. If a pod mounts an image as a volume,
// CRI-O mounts the image once on the directory of its top layer, and keeps it mounted.
func (s *Stack) imageLayers() map[string]bool {
	layers := map[string]bool{}
	text, err := os.ReadFile(filepath.Join(s.privateDir(), "root/overlay-images/images.json"))
	if err != nil {
		return layers // the runtime is not CRI-O, or does not use overlays
	}
	var images []struct{ Layer string }
	if err := json.Unmarshal(text, &images); err != nil {
		return layers
	}
	for _, i := range images {
		layers[i.Layer] = true
	}
	return layers
}

// countInCRI returns the numbers of sandboxes and containers that the runtime lists.
func (s *Stack) countInCRI(ctx context.Context) (sandboxes, containers int, err error) {
	conn, err := s.dial()
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close()
	client := runtimev1.NewRuntimeServiceClient(conn)
	pods, err := client.ListPodSandbox(ctx, &runtimev1.ListPodSandboxRequest{})
	if err != nil {
		return 0, 0, fmt.Errorf("counting sandboxes: %w", err)
	}
	all, err := client.ListContainers(ctx, &runtimev1.ListContainersRequest{})
	if err != nil {
		return 0, 0, fmt.Errorf("counting containers: %w", err)
	}
	return len(pods.GetItems()), len(all.GetContainers()), nil
}

// countAddresses returns the number of addresses in use. The CNI plugin host-local has one file per
// address.
func (s *Stack) countAddresses() int {
	entries, err := os.ReadDir(filepath.Join(s.privateDir(), "cni/ipam", s.Reservation.Bridge()))
	if err != nil {
		return 0 // no pod has had an address yet
	}
	n := 0
	for _, e := range entries {
		if subnetsContain(s.subnets(), parseAddr(e.Name())) {
			n++
		}
	}
	return n
}

// parseAddr parses an address. For an invalid address, parseAddr returns the zero Addr, which is
// in no subnet.
func parseAddr(s string) netip.Addr {
	a, _ := netip.ParseAddr(s)
	return a
}
