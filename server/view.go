package server

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ClusterSource is the name of the source of pods that an API server has bound to the node.
const ClusterSource = "the cluster"

// View is podd's whole published state at one revision. It is immutable, including
// everything that it points to.
type View struct {
	// Revision increases with every change. After a restart of podd, all revisions are greater than
	// before.
	Revision uint64 `json:"revision"`
	// Node is the name of the node, which is the suffix of the names of pods from
	// files and URLs.
	Node    string `json:"node"`
	Version string `json:"version"`
	// RootDir is the absolute path of the directory with podd's state and the volumes.
	RootDir string `json:"root,omitempty"`
	// Runtime is the name and version of the runtime, such as "containerd 2.4.2". It is "" until
	// the runtime has responded.
	Runtime string `json:"runtime,omitempty"`
	// Endpoint is the configured CRI socket; "" if podd uses a well-known socket.
	Endpoint string `json:"endpoint,omitempty"`
	// Sources are the files, directories and URLs that podd reads, and ClusterSource.
	Sources []string `json:"sources,omitempty"`
	// ReadsAnyName reports whether podd reads files with names of any form in directories of manifests,
	// as a kubelet does. If it is false, podd reads only files with the suffix of a manifest.
	ReadsAnyName bool `json:"readsAnyName,omitempty"`
	// WritableSource is the source that the Kubernetes API writes to; "" if there is
	// none.
	WritableSource string `json:"writableSource,omitempty"`
	// UnreadSources are the sources that have not been read completely yet.
	UnreadSources []string `json:"unreadSources,omitempty"`
	// AppliedBatches maps the name of a source to the number of the newest batch whose pods are in
	// Pods. A batch is the content of a source at one time. Only sources that number their batches
	// are in the map.
	AppliedBatches map[string]uint64 `json:"-"`
	// Claims are the PersistentVolumeClaims of the sources, sorted by namespace and
	// name.
	Claims []ClaimView `json:"claims,omitempty"`
	// Starting is set until podd has listed the pods of the runtime. Until then, running pods may
	// be missing from Pods.
	Starting bool `json:"starting,omitempty"`
	// IsDown is set after Commander.Down: podd starts no pods until it is restarted.
	IsDown bool `json:"down,omitempty"`
	// ShuttingDown is set while the node shuts down: podd starts no pods until the node has booted
	// again.
	ShuttingDown bool `json:"shuttingDown,omitempty"`
	// Pressure contains the types of the pressure conditions of the node that are true, such as
	// "DiskPressure".
	Pressure []v1.NodeConditionType `json:"pressure,omitempty"`
	// Files contains an entry for every file and URL that was read, sorted by path.
	Files []FileView `json:"files,omitempty"`
	// Pods contains the desired pods and the pods that still exist on the host, sorted by
	// namespace and name. New content of a file appears in Pods and in Files in the same
	// revision. A pod that did not change keeps its pointer from one View to the next; watchers
	// receive only the pods that changed.
	Pods []*PodView `json:"pods"`
	// RemovedPods contains the last version of each pod that was removed from the host and that its
	// source still lists as being deleted. This version may never have been in Pods. The source
	// needs it to report the exit codes of the containers.
	RemovedPods map[types.NamespacedName]*v1.Pod `json:"-"`
	// Problems is sorted by path, line and column.
	Problems []ProblemView `json:"problems"`

	// NodeObject is the Node object of this node. The function Objects returns the objects of the
	// manifests other than pods, including Secrets; the function may be called concurrently. An
	// object that did not change keeps its pointer from one View to the next. Both fields are nil
	// until podd has read the objects. Only package kube serves them.
	NodeObject *v1.Node        `json:"-"`
	Objects    func() *Objects `json:"-"`
}

// ConfigCondition is the type of the condition of View.NodeObject that describes dynamic configuration. It
// is True if the assigned configuration is in use, and missing without dynamic configuration. Kubelets 1.8
// to 1.10 used this type, too.
const ConfigCondition v1.NodeConditionType = "KubeletConfigOk"

// Pod returns the pod with the given key, or nil if there is none.
func (v *View) Pod(key Key) *PodView {
	i, found := slices.BinarySearchFunc(v.Pods, key, func(p *PodView, k Key) int { return p.Key().Compare(k) })
	if !found {
		return nil
	}
	return v.Pods[i]
}

// FileView describes which content of a file or URL is in effect.
type FileView struct {
	Path string `json:"path"` // see PodView.Path
	// Digest is "sha256:<hex>" of the content in effect; "" if there is none.
	Digest string `json:"digest,omitempty"`
	// ContentTime is the time of the content in effect: the mtime of a file, or the time
	// at which a URL first served the content. It is zero if there is no content.
	ContentTime time.Time `json:"version,omitzero"`
	// OutdatedReason is the reason why the current content of the file is not in effect, such as
	// "edit refused" or "reading failed". OutdatedSince is the time since which the content in
	// effect has been outdated. Both are zero if the current content is in effect.
	OutdatedReason string    `json:"behind,omitempty"`
	OutdatedSince  time.Time `json:"since,omitzero"`
	// RefusedDigest is the digest of the newest content that podd has read if podd refused a document
	// in it; otherwise "".
	RefusedDigest string `json:"refused,omitempty"`
}

// ClaimView is a PersistentVolumeClaim of a source. Several sources may have claims
// with the same name.
type ClaimView struct {
	Claim     Key    `json:"claim"`
	Requested string `json:"requested"` // requested size, such as "1Gi"
	Path      string `json:"path"`      // see PodView.Path
	Line      int    `json:"line,omitempty"`
}

// Severities of a ProblemView.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
)

// ProblemView is a problem that needs action by a user.
type ProblemView struct {
	Path      string `json:"path,omitempty"` // absolute path of a file, or a URL without userinfo and query
	Line      int    `json:"line,omitempty"`
	Column    int    `json:"column,omitempty"`
	Severity  string `json:"severity"` // SeverityError or SeverityWarning
	FieldPath string `json:"field,omitempty"`
	// Message describes the problem and the remedy. It contains no values of
	// environment variables, headers or secrets.
	Message string `json:"message"`
	// Pod is the key of the affected pod; zero if there is none.
	Pod   Key       `json:"pod,omitzero"`
	Since time.Time `json:"since,omitzero"`
}

// String returns "path:line:col: severity: field: message", which editors parse.
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
	if p.FieldPath != "" {
		b.WriteString(p.FieldPath + ": ")
	}
	return b.String() + p.Message
}

// Key is the namespace and the full name of an object. In JSON it is
// "namespace/name".
type Key types.NamespacedName

// String returns "namespace/name", or "" for the zero Key.
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
		return fmt.Errorf("%q does not have the form namespace/name", text)
	}
	return nil
}
