package cri

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// Node queries everything that the runtime reports about itself: version, conditions,
// handlers, features and cgroup driver. If it cannot be reached, the error names the socket
// and the remedy.
//
// Events is what an Observer of this client has found out so far.
func (c *Client) Node(ctx context.Context) (runtime.Node, error) {
	v, err := invoke(ctx, c, c.timeout, c.runtime.Version, &api.VersionRequest{})
	if err != nil {
		return runtime.Node{}, c.diagnose(err)
	}
	node := runtime.Node{Name: v.GetRuntimeName(), Version: v.GetRuntimeVersion(), APIVersion: v.GetRuntimeApiVersion()}
	c.holdsCalls.Store(node.Name == "cri-o")
	if err := c.configuration(ctx, &node); err != nil {
		return runtime.Node{}, err
	}
	return c.nodeStatus(ctx, node)
}

// configuration queries RuntimeConfig for the cgroup driver. If that is not implemented
// (containerd 1.6), it uses the verbose Status, which has the names of the handlers, too.
// Fields that neither reports stay empty.
func (c *Client) configuration(ctx context.Context, node *runtime.Node) error {
	r, err := invoke(ctx, c, c.timeout, c.runtime.RuntimeConfig, &api.RuntimeConfigRequest{})
	switch {
	case err == nil && r.GetLinux() != nil:
		node.CgroupDriver = strings.ToLower(r.GetLinux().GetCgroupDriver().String())
		return nil
	case err != nil && !errors.Is(err, runtime.ErrUnimplemented):
		return withCall("configuration", err)
	}
	s, err := invoke(ctx, c, c.timeout, c.runtime.Status, &api.StatusRequest{Verbose: true})
	if err != nil {
		return withCall("status", err)
	}
	node.CgroupDriver, node.Handlers = fromInfo(s.GetInfo()["config"])
	return nil
}

// withCall adds what was queried to an error, unless the runtime is unreachable: then all
// queries have the same error.
func withCall(what string, err error) error {
	if errors.Is(err, runtime.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("querying the runtime's %s: %w", what, err)
}

// fromInfo parses containerd's configuration in its verbose Status, which is JSON: the
// cgroup driver and the handlers, without their features. It returns "" and nil if they are
// not in it.
func fromInfo(config string) (driver string, handlers map[string]runtime.Handler) {
	var parsed struct {
		Containerd struct {
			DefaultRuntimeName string `json:"defaultRuntimeName"`
			Runtimes           map[string]struct {
				Type    string         `json:"runtimeType"`
				Options map[string]any `json:"options"`
			} `json:"runtimes"`
		} `json:"containerd"`
	}
	if json.Unmarshal([]byte(config), &parsed) != nil {
		return "", nil
	}
	if len(parsed.Containerd.Runtimes) > 0 {
		handlers = map[string]runtime.Handler{"": {}}
		for name := range parsed.Containerd.Runtimes {
			handlers[name] = runtime.Handler{}
		}
	}
	handler, ok := parsed.Containerd.Runtimes[parsed.Containerd.DefaultRuntimeName]
	if !ok || !strings.HasPrefix(handler.Type, "io.containerd.runc.") {
		return "", handlers
	}
	if systemd, _ := handler.Options["SystemdCgroup"].(bool); systemd {
		return "systemd", handlers
	}
	return "cgroupfs", handlers
}
