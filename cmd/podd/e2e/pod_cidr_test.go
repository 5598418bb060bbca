//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/tools"
)

// TestPodCIDR checks that containerd writes its CNI configuration from a template with the pod CIDR
// that podd sends, at the start of podd and after a restart of containerd.
func TestPodCIDR(t *testing.T) {
	t.Parallel()
	template := filepath.Join(t.TempDir(), "template")
	if err := os.WriteFile(template, []byte(`{"cniVersion": "1.0.0", "name": "generated", "plugins": [{"type": "ptp", "ipam": {"type": "host-local", "subnet": "{{.PodCIDR}}"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := stack.ForTest(t, stack.Options{Flavor: tools.Pinned, Config: fmt.Sprintf("[plugins.'io.containerd.cri.v1.runtime'.cni]\nconf_template = %q\n", template)})
	if err := s.DisconnectNetwork(); err != nil {
		t.Fatal(err)
	}
	d := newDaemon(t, s, "--pod-cidr=10.213.0.0/24")
	d.start()
	generated := filepath.Join(s.Dir, "stack/cni/net.d/10-containerd-net.conflist")
	hasCIDR := func() error {
		content, err := os.ReadFile(generated)
		if err == nil && !bytes.Contains(content, []byte(`"subnet": "10.213.0.0/24"`)) {
			err = fmt.Errorf("got %s", content)
		}
		return err
	}
	d.eventually("containerd writes its CNI configuration", hasCIDR)
	if err := s.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(generated); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.eventually("containerd writes its CNI configuration again", hasCIDR)
}
