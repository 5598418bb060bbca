package cri

import (
	"context"
	"encoding/json"
	"strings"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// nodeStatus returns node with the result of a Status call. If the network is not ready, nodeStatus
// makes a second, more expensive call to get the reason.
func (c *Client) nodeStatus(ctx context.Context, node runtime.Node) (runtime.Node, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.Status, &api.StatusRequest{})
	if err != nil {
		return runtime.Node{}, wrapQueryError("status", err)
	}
	node.Reachable = true
	if handlers := toHandlers(r.GetRuntimeHandlers()); handlers != nil {
		node.Handlers = handlers
	}
	node.SupplementalGroupsPolicy = r.GetFeatures().GetSupplementalGroupsPolicy()
	node.Ready, node.Message = findCondition(r, api.RuntimeReady)
	node.NetworkReady, node.NetworkMessage = findCondition(r, api.NetworkReady)
	node.NetworkRemedy = ""
	if !node.NetworkReady {
		node.NetworkMessage, node.NetworkRemedy = c.explainNoNetwork(ctx, node.NetworkMessage)
	}
	return node, nil
}

// toHandlers returns the runtime handlers by name, or nil if the runtime lists none.
func toHandlers(list []*api.RuntimeHandler) map[string]runtime.Handler {
	if len(list) == 0 {
		return nil
	}
	m := make(map[string]runtime.Handler, len(list))
	for _, h := range list {
		m[h.GetName()] = runtime.Handler{
			UserNamespaces:          h.GetFeatures().GetUserNamespaces(),
			RecursiveReadOnlyMounts: h.GetFeatures().GetRecursiveReadOnlyMounts(),
		}
	}
	return m
}

// findCondition returns the value of a runtime condition. A condition that the runtime does not
// report is false. If the value is false, the result reason contains the cause: the message of the
// condition, or a text if the runtime does not report the condition.
func findCondition(r *api.StatusResponse, kind string) (value bool, reason string) {
	for _, c := range r.GetStatus().GetConditions() {
		if c.GetType() != kind {
			continue
		}
		if c.GetStatus() {
			return true, ""
		}
		return false, makeReadable(c.GetMessage())
	}
	return false, "the runtime does not report " + kind
}

// explainNoNetwork returns the cause and the remedy of a network that is not ready, if the verbose Status
// of containerd contains the cause. Otherwise it returns message, the message of the condition
// NetworkReady, and no remedy.
func (c *Client) explainNoNetwork(ctx context.Context, message string) (cause, remedy string) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.Status, &api.StatusRequest{Verbose: true})
	if err != nil {
		return message, ""
	}
	return explainCNI(message, r.GetInfo())
}

// explainCNI works like explainNoNetwork, but takes the info of the verbose Status.
func explainCNI(message string, info map[string]string) (cause, remedy string) {
	lastStatus := makeReadable(info["lastCNILoadStatus"])
	dir := cniDir(info["config"])
	hasFailed := lastStatus != "" && lastStatus != "OK"
	switch {
	case dir == "" && !hasFailed:
		return message, ""
	// The message of the condition is the same for an invalid configuration and for none.
	case hasFailed && !strings.Contains(lastStatus, "no network config found"):
		cause = strings.TrimPrefix(lastStatus, "cni config load failed: ")
		return "invalid CNI configuration: " + strings.TrimSuffix(cause, ": invalid cni config: failed to load cni config"), "correct the file"
	case hasFailed || strings.Contains(message, "not initialized"):
		if dir == "" {
			dir = "the CNI directory"
		}
		return "no CNI configuration in " + dir, "install a CNI configuration; without one, only pods on the host network start"
	}
	return message, ""
}

// cniDir returns the directory from which containerd reads CNI configurations. It returns
// "" if config does not contain the directory.
func cniDir(config string) string {
	var parsed struct {
		CNI struct {
			ConfDir string `json:"confDir"`
		} `json:"cni"`
	}
	if json.Unmarshal([]byte(config), &parsed) != nil {
		return ""
	}
	return makePrintable(parsed.CNI.ConfDir)
}
