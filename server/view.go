package server

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// View is everything podd shows of itself at one revision. It is immutable,
// and so is all that it points to.
type View struct {
	// Revision grows with every change, also across restarts of podd.
	Revision uint64 `json:"revision"`
	// Node is the node's name, the suffix of pods from files and URLs.
	Node    string `json:"node"`
	Version string `json:"version"`
	// Root is the directory of podd's state and of the volumes, absolute.
	Root string `json:"root,omitempty"`
	// Runtime is its name and version, "containerd 2.4.2"; "" while none was
	// reached.
	Runtime string `json:"runtime,omitempty"`
	// Endpoint is the CRI socket that podd was given; "" for a well-known one.
	Endpoint string `json:"endpoint,omitempty"`
	// RestartRules says that the feature gate ContainerRestartRules is on.
	RestartRules bool `json:"restartRules,omitempty"`
	// Sources are the files, directories and URLs that podd reads.
	Sources []string `json:"sources,omitempty"`
	// Written is the one of them that the API writes to; "" for none.
	Written string `json:"written,omitempty"`
	// Unread are those of them that were not seen whole yet.
	Unread []string `json:"unread,omitempty"`
	// Taken has, by source, which of its batches Pods are wanted by; only sources
	// that ask have one.
	Taken map[string]uint64 `json:"-"`
	// Claims are the PersistentVolumeClaims that they hold, in order of namespace
	// and name.
	Claims []ClaimView `json:"claims,omitempty"`
	// Starting says that podd has not yet looked at the runtime: pods may run
	// that Pods lacks.
	Starting bool `json:"starting,omitempty"`
	// Down says that podd was told to end all pods; it starts none until it is
	// started again itself.
	Down bool `json:"down,omitempty"`
	// ShuttingDown says that the machine goes down: podd starts nothing until it has
	// booted.
	ShuttingDown bool `json:"shuttingDown,omitempty"`
	// Files has one entry for every file and URL read, in order of path.
	Files []FileView `json:"files,omitempty"`
	// Pods in order of namespace and name: the wanted, from the revision on in
	// which their file has its entry, and those of which something still
	// exists. A pod that did not change keeps its pointer from one View to the
	// next; watchers are sent only the others.
	Pods []*PodView `json:"pods"`
	// Problems in order of path, line and column.
	Problems []ProblemView `json:"problems"`

	// Machine is this node as an object of Kubernetes, Objects makes those that
	// manifests have beside their pods, Secrets among them, for whoever asks; it
	// may be called from anywhere. What did not change keeps its pointer. Nil while
	// unknown. Only package kube shows them.
	Machine *v1.Node        `json:"-"`
	Objects func() *Objects `json:"-"`
}

// Pod is the one of a key; nil when there is none.
func (v *View) Pod(key Key) *PodView {
	i, found := slices.BinarySearchFunc(v.Pods, key, func(p *PodView, k Key) int { return p.Key().Compare(k) })
	if !found {
		return nil
	}
	return v.Pods[i]
}

// FileView tells which content of a file or URL is wanted.
type FileView struct {
	Path string `json:"path"` // as in PodView.Path
	// Digest is "sha256:<hex>" of the wanted content; "" when none is.
	Digest string `json:"digest,omitempty"`
	// Version is the time of that content: a file's mtime, or when a URL first
	// served it. Zero when there is none.
	Version time.Time `json:"version,omitzero"`
	// Behind says why what is there now is not wanted: "edit refused",
	// "unreadable"; "" when it is. Since is when that began.
	Behind string    `json:"behind,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// ClaimView is a wanted PersistentVolumeClaim. Of several sources each may have
// one of a name.
type ClaimView struct {
	Claim     Key    `json:"claim"`
	Requested string `json:"requested"` // "1Gi"
	Path      string `json:"path"`      // as in PodView.Path
	Line      int    `json:"line,omitempty"`
}

// Severities of a ProblemView.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
)

// ProblemView is something that a user should mend.
type ProblemView struct {
	Path     string `json:"path,omitempty"` // absolute, or a URL without userinfo and query
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Severity string `json:"severity"` // SeverityError or SeverityWarning
	Field    string `json:"field,omitempty"`
	// Message says what is wrong and what to do; it holds no values of env,
	// headers or secrets.
	Message string `json:"message"`
	// Pod is the full key of the pod concerned; zero when unknown.
	Pod   Key       `json:"pod,omitzero"`
	Since time.Time `json:"since,omitzero"`
}

// String is "path:line:col: severity: field: message", the form editors parse.
func (p ProblemView) String() string {
	var b strings.Builder
	if p.Path != "" {
		b.WriteString(p.Path)
		for _, n := range []int{p.Line, p.Column} {
			if n <= 0 {
				break
			}
			fmt.Fprintf(&b, ":%d", n)
		}
		b.WriteString(": ")
	}
	b.WriteString(p.Severity + ": ")
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	return b.String() + p.Message
}

// Key is a namespace and a full name, "namespace/name" in JSON.
type Key types.NamespacedName

// String is "namespace/name", or "" for the zero Key.
func (k Key) String() string {
	if k == (Key{}) {
		return ""
	}
	return types.NamespacedName(k).String()
}

// MarshalText implements encoding.TextMarshaler.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Key) UnmarshalText(text []byte) error {
	*k = Key{}
	if len(text) == 0 {
		return nil
	}
	var ok bool
	if k.Namespace, k.Name, ok = strings.Cut(string(text), "/"); !ok {
		return fmt.Errorf("%q is not namespace/name", text)
	}
	return nil
}
