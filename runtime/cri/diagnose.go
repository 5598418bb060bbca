package cri

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"podd/runtime"
)

// containerdConfigs maps sockets of containerd to the configuration file of containerd, in which
// CRI may be disabled.
var containerdConfigs = map[string]string{
	"/run/containerd/containerd.sock":     "/etc/containerd/config.toml",
	"/var/run/containerd/containerd.sock": "/etc/containerd/config.toml",
}

// A NoCRIError is the error of Client.Node if the program that listens on the socket does not serve CRI.
type NoCRIError struct {
	Cause, Remedy string
}

// Error returns the cause and the remedy.
func (e *NoCRIError) Error() string { return e.Cause + "; " + e.Remedy }

// Unwrap returns runtime.ErrUnimplemented.
func (e *NoCRIError) Unwrap() error { return runtime.ErrUnimplemented }

// diagnose returns a *NoCRIError if err, the error of a Version call, is
// runtime.ErrUnimplemented, and err otherwise. err must come from convertError.
func (c *Client) diagnose(err error) error {
	if !errors.Is(err, runtime.ErrUnimplemented) {
		return err
	}
	if strings.Contains(c.endpoint, "containerd") {
		cause, remedy := explainDisabledCRI(containerdConfigs[c.endpoint])
		return &NoCRIError{Cause: "containerd at " + c.endpoint + " does not serve CRI, because " + cause, Remedy: remedy}
	}
	return &NoCRIError{
		Cause:  c.endpoint + " does not implement CRI, because the socket belongs to another program",
		Remedy: "set --container-runtime-endpoint to the socket of the container runtime",
	}
}

// explainDisabledCRI returns the probable reason why containerd does not serve CRI, and the remedy. config
// is the path of containerd's configuration file, or "" if it is unknown.
func explainDisabledCRI(config string) (cause, remedy string) {
	plugin := disabledPlugin(config)
	if plugin == "" {
		return `"cri" is probably in disabled_plugins of its config.toml`,
			`remove "cri" from disabled_plugins in containerd's config.toml, and restart containerd`
	}
	return fmt.Sprintf("%q is in disabled_plugins of %s (Docker's package adds it)", plugin, config),
		fmt.Sprintf("remove %q from disabled_plugins of %s, and restart containerd", plugin, config)
}

// disabledPlugin returns the name of the CRI plugin in the disabled_plugins of a containerd
// configuration file. It returns "" if the plugin is not disabled or the file cannot be
// read.
func disabledPlugin(config string) string {
	if config == "" {
		return ""
	}
	f, err := os.Open(config)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	return parseDisabledPlugin(io.LimitReader(f, 1<<20))
}

// parseDisabledPlugin works like disabledPlugin, but takes the content of a configuration file. The
// disabled_plugins list may span several lines.
func parseDisabledPlugin(config io.Reader) string {
	inside := false
	for lines := bufio.NewScanner(config); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if strings.HasPrefix(strings.TrimSpace(line), "disabled_plugins") {
			inside = true
		}
		if !inside {
			continue
		}
		for _, name := range []string{"cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"} {
			if strings.Contains(line, `"`+name+`"`) || strings.Contains(line, `'`+name+`'`) {
				return name
			}
		}
		inside = !strings.Contains(line, "]")
	}
	return ""
}
