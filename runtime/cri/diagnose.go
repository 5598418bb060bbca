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

// configs by socket: what decides whether containerd serves CRI.
var containerdConfigs = map[string]string{
	"/run/containerd/containerd.sock":     "/etc/containerd/config.toml",
	"/var/run/containerd/containerd.sock": "/etc/containerd/config.toml",
}

// diagnose says what to do about a runtime that does not tell its version. err
// is clean already; what it is for errors.Is is kept.
func (c *Client) diagnose(err error) error {
	if !errors.Is(err, runtime.ErrUnimplemented) {
		return err
	}
	text := c.endpoint + " serves no CRI: it is the socket of something else"
	if strings.Contains(c.endpoint, "containerd") {
		text = "containerd at " + c.endpoint + " serves no CRI: " + disabledCRI(containerdConfigs[c.endpoint])
	}
	return &callError{text: text, kinds: []error{runtime.ErrUnimplemented}}
}

// disabledCRI says why a containerd may serve no CRI; config may be "".
func disabledCRI(config string) string {
	const remedy = "remove it and restart containerd"
	if plugin := disabledPlugin(config); plugin != "" {
		return fmt.Sprintf("%q is in disabled_plugins of %s (Docker's package does that); %s", plugin, config, remedy)
	}
	return `"cri" is probably in disabled_plugins of its config.toml; ` + remedy
}

// disabledPlugin is the CRI plugin's name as the file's disabled_plugins spells
// it; "" when it is not there or the file cannot be read.
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

// disabledIn looks for the CRI plugin in a disabled_plugins list, which may
// stretch over several lines.
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
