//go:build e2e

package machine

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"podd/runtime/runtimetest/stack/tools"
)

//go:embed testdata
var testdata embed.FS

const manifests = "/etc/podd/manifests"

// TestMain installs podd and its runtime for the tests. After a power cut it uses the installation
// from before the power cut.
func TestMain(m *testing.M) {
	if err := install(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// values are the values for the templates in testdata.
type values struct {
	Tools tools.Set
	Bin   string
}

// installed is a file that exists after install has succeeded.
const installed = "/etc/machine-test"

// install installs containerd and podd as services and starts containerd. It does nothing if an earlier
// run has done this before a power cut, or if PODD_MACHINE_INSTALL is "no".
func install() error {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return fmt.Errorf("checking that systemd is running: %w; run make vm, which runs these tests in a virtual machine because they change the system", err)
	}
	if os.Getenv("PODD_MACHINE_INSTALL") == "no" {
		return nil
	}
	if _, err := os.Stat(installed); err == nil {
		return nil
	}
	set, err := tools.Ensure(context.Background(), tools.Options{})
	if err != nil {
		return err
	}
	v := values{set, filepath.Dir(set.Containerd)}
	for name, to := range map[string]string{
		"containerd.toml":    "/etc/containerd/config.toml",
		"cni.conflist":       "/etc/cni/net.d/10-pods.conflist",
		"containerd.service": "/etc/systemd/system/containerd.service",
		"podd.service":       "/etc/systemd/system/podd.service",
	} {
		if err := v.write(name, to); err != nil {
			return fmt.Errorf("installing %s: %w", to, err)
		}
	}
	if err := os.MkdirAll(manifests, 0o755); err != nil {
		return fmt.Errorf("installing: %w", err)
	}
	for _, command := range []string{
		"systemctl daemon-reload", "systemctl enable containerd podd", "systemctl start containerd",
		set.Ctr + " --namespace k8s.io images import " + set.Images,
	} {
		if _, err := system(command); err != nil {
			return fmt.Errorf("installing: %w", err)
		}
	}
	return os.WriteFile(installed, nil, 0o644)
}

func (v values) write(name, to string) error {
	t, err := template.ParseFS(testdata, "testdata/"+name)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, v); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, out.Bytes(), 0o644)
}

// system runs a command and returns its output. The words of the command are separated by
// spaces.
func system(command string) (string, error) {
	words := strings.Fields(command)
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return text, fmt.Errorf("%s: %w: %s", command, err, text)
	}
	return text, nil
}
