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
	//go:embed config/crio.conf
	crioConf string
	//go:embed config/runc.sh
	runcSh string
	//go:embed config/cni.conflist
	cniConflist string
)

// templateValues contains the values for the templates in config/.
type templateValues struct {
	Own, Socket, ShimSockets, CNIBin, Runc string
	CRIORunc, Pinns, Conmon                string
	PauseImage, Snapshotter, StorageOption string
	Bridge, Subnet                         string
	Subnet6                                string // "" if the pods have no IPv6 address
	Masquerade                             bool
}

// configure writes the configurations of the runtime and of CNI. extraTOML is merged into the
// configuration of the runtime.
func (s *Stack) configure(extraTOML string) error {
	for _, dir := range []string{"conf.d", "root", "run", "runc", "cni/net.d", "cni/ipam", "certs.d"} {
		if err := os.MkdirAll(filepath.Join(s.privateDir(), dir), 0o700); err != nil {
			return fmt.Errorf("creating the stack's directories: %w", err)
		}
	}
	if err := os.MkdirAll(s.shimSockets(), 0o700); err != nil {
		return fmt.Errorf("creating the directory of shim sockets: %w", err)
	}
	s.Snapshotter = snapshotter(s.Tools.Flavor, filepath.Join(s.privateDir(), "root"))
	toml := containerdTOML
	switch s.Tools.Flavor {
	case tools.Debian:
		toml = containerd16TOML
	case tools.CRIO:
		toml = crioConf
		if err := s.configureCRIO(); err != nil {
			return err
		}
	}
	if err := s.render(configIn(s.Dir, s.Tools.Flavor), toml); err != nil {
		return err
	}
	if extraTOML != "" {
		if err := os.WriteFile(filepath.Join(s.privateDir(), "conf.d/more.toml"), []byte(extraTOML), 0o600); err != nil {
			return fmt.Errorf("writing the configuration of the runtime: %w", err)
		}
	}
	return s.ConnectNetwork()
}

// MirrorRegistries makes containerd pull the images of all registries from another registry, except
// the images of the registries in direct. mirror and direct are hosts with ports. containerd uses
// plain HTTP for all of them.
func (s *Stack) MirrorRegistries(mirror string, direct ...string) error {
	err := s.setServer("_default", mirror)
	for _, host := range direct {
		err = errors.Join(err, s.setServer(host, host))
	}
	if err != nil {
		return fmt.Errorf("configuring a mirror of registries: %w", err)
	}
	return nil
}

// setServer makes containerd pull the images of a registry from the host server, over plain HTTP.
// The registry "_default" stands for all registries without a server of their own.
func (s *Stack) setServer(registry, server string) error {
	dir := filepath.Join(s.privateDir(), "certs.d", registry)
	text := fmt.Sprintf("server = \"http://%s\"\n", server)
	return errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "hosts.toml"), []byte(text), 0o600))
}

func (s *Stack) networkFile() string {
	return filepath.Join(s.privateDir(), "cni/net.d/10-podd.conflist")
}

// ConnectNetwork writes the CNI configuration, as Start does. Shortly afterwards the runtime
// reports the network as ready.
func (s *Stack) ConnectNetwork() error { return s.render(s.networkFile(), cniConflist) }

// DisconnectNetwork removes the CNI configuration. Shortly afterwards the runtime reports the
// network as not ready. Pods with an address keep the address.
func (s *Stack) DisconnectNetwork() error {
	if err := os.Remove(s.networkFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the CNI configuration: %w", err)
	}
	return nil
}

// render fills a template and writes it to file.
func (s *Stack) render(file, text string) error {
	t, err := template.New(filepath.Base(file)).Option("missingkey=error").Parse(text)
	if err != nil {
		return fmt.Errorf("parsing the template of %s: %w", file, err)
	}
	v := templateValues{
		Own: s.privateDir(), Socket: s.Socket(), ShimSockets: s.shimSockets(),
		CNIBin: s.Tools.CNI, Runc: s.Tools.Runc, CRIORunc: s.crioRunc(), Pinns: s.Tools.Pinns, Conmon: s.Tools.Conmon,
		PauseImage: PauseImage, Snapshotter: s.Snapshotter, StorageOption: storageOption,
		Bridge: s.Reservation.Bridge(), Subnet: s.Reservation.Subnet.String(),
		Masquerade: s.Masquerade,
	}
	if s.DualStack {
		v.Subnet6 = s.Reservation.Subnet6().String()
	}
	var out bytes.Buffer
	if err := t.Execute(&out, v); err != nil {
		return fmt.Errorf("executing the template of %s: %w", file, err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing the configuration of the runtime: %w", err)
	}
	return nil
}
