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

// containerdConfigs contains, by socket, the file that determines whether containerd serves
// CRI.
var containerdConfigs = map[string]string{
	"/run/containerd/containerd.sock":     "/etc/containerd/config.toml",
	"/var/run/containerd/containerd.sock": "/etc/containerd/config.toml",
}

// diagnose adds the remedy for a runtime that does not return its version. err must be
// clean. The result matches the same errors with errors.Is.
func (c *Client) diagnose(err error) error {
	if !errors.Is(err, runtime.ErrUnimplemented) {
		return err
	}
	text := c.endpoint + " does not serve CRI; it is the socket of another program"
	if strings.Contains(c.endpoint, "containerd") {
		text = "containerd at " + c.endpoint + " does not serve CRI: " + disabledCRI(containerdConfigs[c.endpoint])
	}
	return &callError{text: text, kinds: []error{runtime.ErrUnimplemented}}
}

// disabledCRI returns why a containerd may not serve CRI. config may be "".
func disabledCRI(config string) string {
	const remedy = "remove it and restart containerd"
	if plugin := disabledPlugin(config); plugin != "" {
		return fmt.Sprintf("%q is in disabled_plugins of %s (Docker's package does that); %s", plugin, config, remedy)
	}
	return `"cri" is probably in disabled_plugins of its config.toml; ` + remedy
}

// disabledPlugin returns the name of the CRI plugin in the file's disabled_plugins, or ""
// if it is not there or the file cannot be read.
func disabledPlugin(config string) string {
	if config == "" {
		return ""
	}
	f, err := os.Open(config)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	return disabledIn(io.LimitReader(f, 1<<20))
}

// disabledIn searches the CRI plugin in a disabled_plugins list, which may have several
// lines.
func disabledIn(config io.Reader) string {
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
