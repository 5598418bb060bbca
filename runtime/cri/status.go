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
	if !node.NetworkReady {
		node.NetworkMessage = c.explainNoNetwork(ctx, node.NetworkMessage)
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

// explainNoNetwork returns message, or a clearer text if message means that there is no
// network. The clearer text contains the CNI directory from containerd's verbose Status.
func (c *Client) explainNoNetwork(ctx context.Context, message string) string {
	r, err := invoke(ctx, c, c.timeout, c.runtime.Status, &api.StatusRequest{Verbose: true})
	if err != nil {
		return message
	}
	lastStatus := makeReadable(r.GetInfo()["lastCNILoadStatus"])
	dir := cniDir(r.GetInfo()["config"])
	switch {
	case dir == "" && (lastStatus == "" || lastStatus == "OK"):
		return message
	case strings.Contains(lastStatus, "no network config found") || strings.Contains(message, "not initialized"):
		if dir == "" {
			dir = "the CNI directory"
		}
		return "no CNI configuration in " + dir + "; install a CNI configuration; without one, only pods on the host network start"
	case lastStatus != "" && lastStatus != "OK":
		return "invalid CNI configuration: " + lastStatus
	}
	return message
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
