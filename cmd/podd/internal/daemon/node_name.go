package daemon

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/nodename"
	"podd/manifest"
	"podd/server"
)

// hostnameInterval is the interval between reads of the hostname.
const hostnameInterval = 10 * time.Second

// A renamedError is the error that stops podd's parts after the user has accepted another name of
// the node.
type renamedError struct{ name string }

// Error implements error.
func (e *renamedError) Error() string { return fmt.Sprintf("the node is renamed to %q", e.name) }

// A nodeNamer reports a problem if the name of the host differs from the name of the node.
// It renames the node when a user accepts the new name.
type nodeNamer struct {
	root   string          // podd's root directory
	record nodename.Record // the name in effect and earlier names
	// configuredName is the name in the configuration. It comes from the user, from the cloud or
	// from the hostname at the start. The hostname may be invalid.
	configuredName string
	isSetByUser    bool   // configuredName was set by the user
	cloud          string // the cloud that provided configuredName; may be ""
	isInCluster    bool
	// acceptedName receives the name that a user accepted. Its capacity is one.
	acceptedName chan string
}

// newNodeNamer returns a nodeNamer with the name that is stored in the root directory. The caller
// must have locked the root directory. On the first start newNodeNamer stores the configured
// name. It returns an error if no name is stored and the hostname is not a valid node name.
func newNodeNamer(cfg *config.Config, log *slog.Logger) (*nodeNamer, error) {
	storedRecord, err := nodename.Read(cfg.RootDir)
	if err != nil {
		return nil, err
	}
	if storedRecord.Name == "" {
		if err := cfg.CheckNodeName(); err != nil {
			return nil, err
		}
	}
	configuredName := cmp.Or(cfg.NodeName, cfg.InvalidHostname)
	record, differs := storedRecord.Resolve(configuredName, cfg.NodeNameSetByUser)
	if differs {
		log.Warn("node name differs from the stored name; using the stored name", "found", configuredName, "stored", record.Name)
	}
	if record.Name != storedRecord.Name {
		if err := nodename.Write(cfg.RootDir, record); err != nil {
			log.Warn("storing the node name failed; pods will be replaced if the hostname changes before podd can store it", "err", err)
		}
	}
	return &nodeNamer{
		root: cfg.RootDir, record: record, configuredName: configuredName, isSetByUser: cfg.NodeNameSetByUser, cloud: cfg.Cloud,
		isInCluster: cfg.Cluster.Kubeconfig != "", acceptedName: make(chan string, 1),
	}, nil
}

// nameProblem compares newName with the name in effect. It returns a problem if the names differ,
// and nil otherwise.
func (n *nodeNamer) nameProblem(newName string) *manifest.Problem {
	storedName := n.record.Name
	if storedName == newName {
		return nil
	}
	source := "the hostname is"
	if n.cloud != "" {
		source = "the name in cloud " + n.cloud + " is"
	}
	remedy := "run \"podd accept node-name\" to rename the node and replace its pods"
	if _, err := config.NormalizeNodeName(newName); err != nil {
		remedy = fmt.Sprintf("%q cannot name a node (letters, digits, - and .)", newName)
	} else if n.isInCluster {
		remedy = renameInstructions(newName)
	}
	return &manifest.Problem{Severity: manifest.Warning, Message: fmt.Sprintf(
		"%s %q, but the node name stored in %s is %q; podd uses the stored name; %s; to keep the stored name without this warning, set --hostname-override=%s",
		source, newName, n.root, storedName, remedy, storedName)}
}

// renameInstructions returns instructions for changing the name of a cluster's node. name is the
// new name. podd cannot rename the node itself, because its credential is bound to the present
// name: NodeRestriction permits neither the registration of another Node nor a certificate request
// for another Node.
func renameInstructions(name string) string {
	return fmt.Sprintf("to rename the node and replace its pods, use a kubeconfig for node %s and --hostname-override=%s", name, name)
}

// observedName returns the name that the node would have without a stored name. If the hostname is
// not a valid node name, it returns the hostname and an error.
func (n *nodeNamer) observedName() (name string, err error) {
	if n.isSetByUser || n.cloud != "" {
		return n.configuredName, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("reading the hostname: %w", err)
	}
	name, err = config.NormalizeNodeName(host)
	if err != nil {
		return host, err
	}
	return name, nil
}

// run watches the hostname until ctx is done. When the hostname changes, run calls publish with the
// problem. If the hostname changes back to the name in effect, run calls publish with nil. After a
// user has accepted another name, run returns a renamedError.
func (n *nodeNamer) run(ctx context.Context, publish func(*manifest.Problem)) error {
	tick := time.NewTicker(hostnameInterval)
	defer tick.Stop()
	for newName := n.configuredName; ; {
		if name, _ := n.observedName(); name != "" && name != newName {
			newName = name
			publish(n.nameProblem(newName))
		}
		select {
		case <-ctx.Done():
			return nil
		case name := <-n.acceptedName:
			return &renamedError{name}
		case <-tick.C:
		}
	}
}

// accept stores the current name, restarts podd's parts with this name, and returns a message for
// the user.
func (n *nodeNamer) accept() (message string, err error) {
	name, err := n.observedName()
	if err != nil {
		return "", err
	}
	stored := n.record.Name
	if name == stored {
		return "", &server.Error{Status: http.StatusConflict, Message: fmt.Sprintf("accepting the node name: the node already has the name %q", name)}
	}
	if n.isInCluster {
		return "", &server.Error{Status: http.StatusConflict, Message: fmt.Sprintf("accepting the node name %q: node %q belongs to a cluster; %s", name, stored, renameInstructions(name))}
	}
	if err := nodename.Write(n.root, n.record.Rename(name)); err != nil {
		return "", err
	}
	select {
	case n.acceptedName <- name:
	default: // a user has already accepted the name
	}
	return fmt.Sprintf("node %q renamed to %q; podd restarts every pod with the new name; run \"podd ps\" for the pods", stored, name), nil
}
