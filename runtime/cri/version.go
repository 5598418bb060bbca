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

// Node asks the runtime for everything it says of itself: version, conditions,
// handlers, features and cgroup driver. When it cannot be asked, the error is a
// diagnosis that names the socket and says what to do.
//
// Events is what an Observer of this client has found out so far.
func (c *Client) Node(ctx context.Context) (runtime.Node, error) {
	v, err := invoke(ctx, c, c.timeout, c.runtime.Version, &api.VersionRequest{})
	if err != nil {
		return runtime.Node{}, c.diagnose(err)
	}
	node := runtime.Node{Name: v.GetRuntimeName(), Version: v.GetRuntimeVersion(), APIVersion: v.GetRuntimeApiVersion()}
	if err := c.configuration(ctx, &node); err != nil {
		return runtime.Node{}, err
	}
	return c.nodeStatus(ctx, node)
}

// configuration asks RuntimeConfig for the cgroup driver and, where that is not
// served (containerd 1.6), looks into the verbose Status, which has the names of
// the handlers, too. Both stay empty when neither says.
func (c *Client) configuration(ctx context.Context, node *runtime.Node) error {
	r, err := invoke(ctx, c, c.timeout, c.runtime.RuntimeConfig, &api.RuntimeConfigRequest{})
	switch {
	case err == nil && r.GetLinux() != nil:
		node.CgroupDriver = strings.ToLower(r.GetLinux().GetCgroupDriver().String())
		return nil
	case err != nil && !errors.Is(err, runtime.ErrUnimplemented):
		return asking("configuration", err)
	}
	s, err := invoke(ctx, c, c.timeout, c.runtime.Status, &api.StatusRequest{Verbose: true})
	if err != nil {
		return asking("status", err)
	}
	node.CgroupDriver, node.Handlers = fromInfo(s.GetInfo()["config"])
	return nil
}

// asking says what was asked for, unless there was nobody to ask: then the
// same words come for every question.
func asking(what string, err error) error {
	if errors.Is(err, runtime.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("asking the runtime for its %s: %w", what, err)
}

// fromInfo reads containerd's own configuration, which its verbose Status holds
// as JSON: the cgroup driver and the handlers, of whose features nothing is
// told. "" and nil when it does not tell.
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
