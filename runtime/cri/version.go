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
	if node.CgroupDriver, err = c.cgroupDriver(ctx); err != nil {
		return runtime.Node{}, err
	}
	return c.nodeStatus(ctx, node)
}

// cgroupDriver asks RuntimeConfig and, where that is not served (containerd
// 1.6), looks into the verbose Status. "" when neither says.
func (c *Client) cgroupDriver(ctx context.Context) (string, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.RuntimeConfig, &api.RuntimeConfigRequest{})
	switch {
	case err == nil && r.GetLinux() != nil:
		return strings.ToLower(r.GetLinux().GetCgroupDriver().String()), nil
	case err != nil && !errors.Is(err, runtime.ErrUnimplemented):
		return "", asking("configuration", err)
	}
	s, err := invoke(ctx, c, c.timeout, c.runtime.Status, &api.StatusRequest{Verbose: true})
	if err != nil {
		return "", asking("status", err)
	}
	return driverFromInfo(s.GetInfo()["config"]), nil
}

// asking says what was asked for, unless there was nobody to ask: then the
// same words come for every question.
func asking(what string, err error) error {
	if errors.Is(err, runtime.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("asking the runtime for its %s: %w", what, err)
}

// driverFromInfo reads containerd's own configuration, which its verbose Status
// holds as JSON. "" when it does not tell.
func driverFromInfo(config string) string {
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
		return ""
	}
	handler, ok := parsed.Containerd.Runtimes[parsed.Containerd.DefaultRuntimeName]
	if !ok || !strings.HasPrefix(handler.Type, "io.containerd.runc.") {
		return ""
	}
	if systemd, _ := handler.Options["SystemdCgroup"].(bool); systemd {
		return "systemd"
	}
	return "cgroupfs"
}
