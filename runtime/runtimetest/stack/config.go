package stack

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/template"

	"podd/runtime/runtimetest/stack/tools"
)

var (
	//go:embed config/containerd.toml
	containerdTOML string
	//go:embed config/containerd-1.6.toml
	containerd16TOML string
	//go:embed config/cni.conflist
	cniConflist string
)

// values are what the templates in config/ name.
type values struct {
	Own, Socket, ShimSockets, CNIBin, Runc string
	PauseImage, Snapshotter                string
	Bridge, Subnet                         string
	Subnet6                                string // "": the pods have no IPv6
}

// configure writes the private configuration of containerd, with more merged
// over it, and that of CNI.
func (s *Stack) configure(more string) error {
	for _, dir := range []string{"conf.d", "root", "run", "runc", "cni/net.d", "cni/ipam", "certs.d"} {
		if err := os.MkdirAll(filepath.Join(s.own(), dir), 0o700); err != nil {
			return fmt.Errorf("making the stack's directories: %w", err)
		}
	}
	if err := os.MkdirAll(s.shimSockets(), 0o700); err != nil {
		return fmt.Errorf("making the directory of shim sockets: %w", err)
	}
	s.Snapshotter = snapshotter(filepath.Join(s.own(), "root"))
	toml := containerdTOML
	if s.Tools.Flavor == tools.Debian {
		toml = containerd16TOML
	}
	if err := s.render(configIn(s.Dir), toml); err != nil {
		return err
	}
	if more != "" {
		if err := os.WriteFile(filepath.Join(s.own(), "conf.d/more.toml"), []byte(more), 0o600); err != nil {
			return fmt.Errorf("writing the configuration: %w", err)
		}
	}
	return s.ConnectNetwork()
}

func (s *Stack) networkFile() string { return filepath.Join(s.own(), "cni/net.d/10-podd.conflist") }

// ConnectNetwork writes the CNI configuration, which Start does: containerd
// sees it and, a moment later, reports the network as ready.
func (s *Stack) ConnectNetwork() error { return s.render(s.networkFile(), cniConflist) }

// DisconnectNetwork removes the CNI configuration. A moment later containerd
// reports the network as not ready. Pods that have an address keep it.
func (s *Stack) DisconnectNetwork() error {
	if err := os.Remove(s.networkFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the CNI configuration: %w", err)
	}
	return nil
}

func (s *Stack) render(file, text string) error {
	t, err := template.New(filepath.Base(file)).Option("missingkey=error").Parse(text)
	if err != nil {
		return fmt.Errorf("parsing the template of %s: %w", file, err)
	}
	v := values{
		Own: s.own(), Socket: s.Socket(), ShimSockets: s.shimSockets(),
		CNIBin: s.Tools.CNI, Runc: s.Tools.Runc,
		PauseImage: PauseImage, Snapshotter: s.Snapshotter,
		Bridge: s.Claim.Bridge(), Subnet: s.Claim.Subnet.String(),
	}
	if s.DualStack {
		v.Subnet6 = s.Claim.Subnet6().String()
	}
	var out bytes.Buffer
	if err := t.Execute(&out, v); err != nil {
		return fmt.Errorf("filling the template of %s: %w", file, err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return nil
}
