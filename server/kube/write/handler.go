// Package write serves requests that change objects.
//
// Objects come from manifests, so a request that creates, changes or deletes an object
// edits the manifest of the object. If Options.Manifests is set, the API has a directory
// of manifests. Objects that are created through the API can be changed and deleted
// through the API, with the rules of an API server:
//
//	body ── decode ── validate ──▶ file ── source ── router ──▶ View ──▶ response
//
// Writes are serialized, and the response to a write is sent only when the View contains the
// result. Therefore a client that reads or watches an object after its own write receives the
// result of the write, and no update is lost. Files of other sources are never modified. The error
// for a write to an object in such a file contains the name of the file. Without Manifests, all
// writes are rejected (unsupported.go), except those that add ephemeral containers to running pods,
// because ephemeral containers are not in manifests (ephemeral.go).
//
// The managers of fields are tracked in metadata.managedFields, as in an API server: a server-side
// apply returns a conflict for fields of other managers, and removes fields that its manager no
// longer applies (manage.go, apply.go and package managed). They are not tracked for files of other
// sources and for ephemeral containers.
package write

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
	"podd/server/kube/managed"
	"podd/server/kube/request"
	"podd/server/kube/resource"
)

// An ObjectReader returns the objects that the API serves.
type ObjectReader interface {
	// Find returns an object, or the API's error NotFound if the object does not exist.
	Find(ctx context.Context, res *resource.Definition, key server.Key) (*resource.Entry, error)
	// Select returns the objects in a namespace that match the selectors of a query, and
	// the revision of the list.
	Select(ctx context.Context, res *resource.Definition, namespace string, q url.Values) ([]*resource.Entry, uint64, error)
}

// A ManifestStore stores the objects that are created through the API, each in a file
// that podd reads like other manifests. It must be safe for concurrent use.
type ManifestStore interface {
	// Path returns the path of an object's file, whether or not it exists.
	Path(kind string, key server.Key) string
	// Parse parses and validates text as podd does when it reads a file with this text.
	Parse(kind string, text []byte) ParsedManifest
	// Read returns the content of a file, or fs.ErrNotExist if there is no file.
	Read(kind string, key server.Key) ([]byte, error)
	// Write atomically replaces a file. If it fails, the old content remains.
	Write(kind string, key server.Key, text []byte) error
	Remove(kind string, key server.Key) error
	// Delete sets the grace period with which a pod terminates. It takes effect at once if
	// the pod is already terminating, and otherwise when the pod's file is removed.
	Delete(ctx context.Context, pod server.Key, uid types.UID, grace time.Duration) error
	// CancelDelete reverts the effect of Delete. It is called if the file of the pod could not be
	// removed.
	CancelDelete(ctx context.Context, pod server.Key, uid types.UID) error
}

// A ParsedManifest is the result of parsing the text of an object.
type ParsedManifest struct {
	Object   server.Object        // with defaults, owned by the caller; nil if the text is invalid
	Causes   []metav1.StatusCause // errors in the text
	Warnings []string
	// Version identifies a version of a pod. Two manifests have the same Version if a running pod
	// can change from one to the other without a restart. It is "" for objects that are not pods.
	Version string
}

// Options configure a Handler. All fields are required unless their comment states otherwise.
type Options struct {
	State   server.Viewer
	Objects ObjectReader
	Fields  *managed.FieldTracker
	// Manifests stores the objects that are created through the API. If it is nil,
	// all writes are rejected.
	Manifests ManifestStore
	// InCluster is set if the node belongs to a cluster. If it is set, the errors for rejected
	// writes do not recommend the flag --api-manifest-dir.
	InCluster bool
	// Debugger adds ephemeral containers. If it is nil, ephemeral containers are read-only.
	Debugger Debugger
	Now      func() time.Time
}

// Handler serves requests that change objects. It is safe for concurrent use.
type Handler struct {
	state     server.Viewer
	objects   ObjectReader
	fields    *managed.FieldTracker
	manifests ManifestStore
	inCluster bool
	debugger  Debugger
	now       func() time.Time

	writeLock chan struct{} // contains an element while a write is in progress
	debugLock chan struct{} // contains an element while ephemeral containers are being added
}

// New returns a Handler.
func New(o Options) *Handler {
	return &Handler{
		state: o.State, objects: o.Objects, fields: o.Fields, manifests: o.Manifests, inCluster: o.InCluster, debugger: o.Debugger, now: o.Now,
		writeLock: make(chan struct{}, 1), debugLock: make(chan struct{}, 1),
	}
}

// Serve serves a write, and rejects any request that the API does not support.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, res *resource.Definition, i request.Info) {
	var err error
	switch {
	case h.debugger != nil && i.Subresource == resource.EphemeralContainers && (i.Verb == "update" || i.Verb == "patch"):
		err = h.addEphemeral(w, r, res, i)
	case isSupported(res, i):
		err = convertWriteError((&call{Handler: h, w: w, r: r, res: res, i: i}).serve())
	default:
		err = h.newUnsupportedError(res, i)
	}
	if err != nil {
		server.ReplyStatus(w, err)
	}
}

// isSupported reports whether the request is a write that podd supports.
func isSupported(res *resource.Definition, i request.Info) bool {
	if !slices.Contains(res.Verbs, i.Verb) || isAllNamespaces(res, i) || i.Subresource != "" && i.Subresource != "resize" {
		return false
	}
	switch i.Verb {
	case "create":
		return i.Name == "" && i.Subresource == ""
	case "update", "patch":
		return i.Name != ""
	case "delete":
		return i.Subresource == ""
	}
	return i.Verb == "deletecollection"
}

// isAllNamespaces reports whether the request is for the objects of all namespaces. Creating
// objects and deleting a collection is supported for a single namespace only.
func isAllNamespaces(res *resource.Definition, i request.Info) bool {
	return res.Namespaced && i.Namespace == ""
}

// convertWriteError returns an error with the HTTP status 507 if a full disk or an exceeded disk
// quota is the cause of err. It returns other errors unchanged.
func convertWriteError(err error) error {
	isDiskFull := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	if statusErr := apierrors.APIStatus(nil); errors.As(err, &statusErr) || !isDiskFull {
		return err
	}
	return &server.Error{Status: http.StatusInsufficientStorage, Message: "nothing was changed: " + err.Error() + "; free disk space and try again"}
}
