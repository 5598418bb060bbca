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

// Node queries the version, conditions, handlers, features and cgroup driver of the runtime. If the
// runtime is unreachable, the error contains the socket and the remedy.
func (c *Client) Node(ctx context.Context) (runtime.Node, error) {
	v, err := invoke(ctx, c, c.timeout, c.runtime.Version, &api.VersionRequest{})
	if err != nil {
		return runtime.Node{}, c.diagnose(err)
	}
	node := runtime.Node{Name: v.GetRuntimeName(), Version: v.GetRuntimeVersion(), APIVersion: v.GetRuntimeApiVersion()}
	c.isCRIO.Store(node.Name == "cri-o")
	if err := c.addConfiguration(ctx, &node); err != nil {
		return runtime.Node{}, err
	}
	return c.nodeStatus(ctx, node)
}

// addConfiguration queries RuntimeConfig for the cgroup driver. If the runtime does not
// implement RuntimeConfig (containerd 1.6), it uses the verbose Status, which also contains
// the names of the handlers. Fields that the runtime does not report stay empty.
func (c *Client) addConfiguration(ctx context.Context, node *runtime.Node) error {
	r, err := invoke(ctx, c, c.timeout, c.runtime.RuntimeConfig, &api.RuntimeConfigRequest{})
	switch {
	case err == nil && r.GetLinux() != nil:
		node.CgroupDriver = strings.ToLower(r.GetLinux().GetCgroupDriver().String())
		return nil
	case err != nil && !errors.Is(err, runtime.ErrUnimplemented):
		return wrapQueryError("configuration", err)
	}
	s, err := invoke(ctx, c, c.timeout, c.runtime.Status, &api.StatusRequest{Verbose: true})
	if err != nil {
		return wrapQueryError("status", err)
	}
	node.CgroupDriver, node.Handlers = parseConfig(s.GetInfo()["config"])
	return nil
}

// wrapQueryError prepends the name of the queried data to an error. If the runtime is unreachable,
// it returns err, because in that case all queries fail with the same error.
func wrapQueryError(data string, err error) error {
	if errors.Is(err, runtime.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("querying the runtime's %s: %w", data, err)
}

// parseConfig parses containerd's configuration, which the verbose Status contains as JSON. It
// returns the cgroup driver and the handlers without their features. If the configuration contains
// no cgroup driver, driver is "". If it contains no handlers, handlers is nil.
func parseConfig(config string) (driver string, handlers map[string]runtime.Handler) {
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
