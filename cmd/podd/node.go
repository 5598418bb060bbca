package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"

	"podd/cmd/podd/internal/config"
	"podd/reconcile/cgroup"
	"podd/reconcile/render"
)

// renderNode is the machine as pods see it.
func renderNode(cfg *config.Config, instance string) (render.Node, error) {
	dns, err := readDNS(cfg.ResolvConf)
	if err != nil {
		return render.Node{}, err
	}
	memory, err := totalMemory("/proc/meminfo")
	if err != nil {
		return render.Node{}, err
	}
	machine, err := config.ThisMachine()
	if err != nil {
		return render.Node{}, err
	}
	return render.Node{
		Name:         cfg.NodeName,
		HostIPs:      hostIPs(cfg.NodeIPs),
		Capacity:     render.Resources{MilliCPU: int64(runtime.NumCPU()) * 1000, Memory: memory},
		Instance:     instance,
		LogsDir:      cfg.PodLogsDir,
		CgroupRoot:   cfg.CgroupRoot,
		CgroupDriver: cfg.CgroupDriver,
		CgroupV2:     machine.CgroupV2,
		SwapLimits:   machine.SwapLimits,
		PodPids:      cfg.PodPids, HugePageSizes: cgroup.HugePageSizes(),
		SELinux:      machine.SELinux,
		DNS:          dns, ClusterDNS: cfg.ClusterDNS, ClusterDomain: cfg.ClusterDomain,
		SeccompDefault: cfg.SeccompDefault,
	}, nil
}

// readDNS reads a resolv.conf; none at all is a machine without DNS.
func readDNS(path string) (render.DNS, error) {
	if path == "" {
		return render.DNS{}, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return render.DNS{}, nil
	}
	if err != nil {
		return render.DNS{}, fmt.Errorf("reading the node's DNS: %w", err)
	}
	return render.ParseResolvConf(string(text)), nil
}

func totalMemory(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("reading the machine's memory: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		if name != "MemTotal" {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		return kib << 10, err
	}
	return 0, fmt.Errorf("reading the machine's memory: %s has no MemTotal", path)
}

// hostIPs are the given addresses, else the one a packet to the world would
// leave from, else the first that is not loopback, else loopback.
func hostIPs(given []netip.Addr) []string {
	if len(given) > 0 {
		var out []string
		for _, a := range given {
			out = append(out, a.String())
		}
		return out
	}
	// Connecting a UDP socket sends nothing; it makes the kernel pick a route.
	if c, err := net.Dial("udp", "192.0.2.1:9"); err == nil {
		defer c.Close()
		if a, ok := c.LocalAddr().(*net.UDPAddr); ok && !a.IP.IsLoopback() {
			return []string{a.IP.String()}
		}
	}
	if addrs, err := net.InterfaceAddrs(); err == nil {
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
				return []string{n.IP.String()}
			}
		}
	}
	return []string{"127.0.0.1"}
}
