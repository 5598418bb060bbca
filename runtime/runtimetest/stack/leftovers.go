package stack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Leftovers counts what pods have made and not taken away. The zero value is
// what a test wants to see when its pods are gone. The bridge is not counted:
// it stays for the next pod.
type Leftovers struct {
	Sandboxes, Containers int // as CRI lists them, if containerd runs
	Shims                 int
	Mounts                int // below Dir, network namespaces left out
	NetNS                 int
	Cgroups               int
	Rules                 int // of nft, about addresses of the stack's subnets
	Addresses             int // that the CNI plugins hold
}

func (l Leftovers) String() string {
	return fmt.Sprintf("%d sandboxes, %d containers, %d shims, %d mounts, %d network namespaces, %d cgroups, %d nft rules, %d addresses",
		l.Sandboxes, l.Containers, l.Shims, l.Mounts, l.NetNS, l.Cgroups, l.Rules, l.Addresses)
}

// Leftovers looks at the machine. What is being removed may still be counted:
// a test waits until it is zero.
func (s *Stack) Leftovers(ctx context.Context) (Leftovers, error) {
	var l Leftovers
	var errs [4]error
	if s.Running() {
		l.Sandboxes, l.Containers, errs[0] = s.count(ctx)
	}
	l.Shims, errs[1] = s.shims()
	mounts, err := mountsBelow(s.Dir)
	errs[2] = err
	for _, m := range mounts {
		if filepath.Base(filepath.Dir(m)) == "netns" {
			l.NetNS++
		} else {
			l.Mounts++
		}
	}
	cgroups, err := findCgroups(s.ownCgroups())
	l.Cgroups, errs[3] = len(cgroups), err
	l.Rules = len(ownRules(ctx, s.subnets()))
	l.Addresses = s.addresses()
	return l, errors.Join(errs[:]...)
}

func (s *Stack) count(ctx context.Context) (sandboxes, containers int, err error) {
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

// addresses counts the files host-local keeps, one an address.
func (s *Stack) addresses() int {
	entries, err := os.ReadDir(filepath.Join(s.own(), "cni/ipam", s.Claim.Bridge()))
	if err != nil {
		return 0 // no pod had a network yet
	}
	n := 0
	for _, e := range entries {
		if inAny(s.subnets(), parseAddr(e.Name())) {
			n++
		}
	}
	return n
}

// parseAddr is the zero Addr, which is in no subnet, for what is no address.
func parseAddr(s string) netip.Addr {
	a, _ := netip.ParseAddr(s)
	return a
}
