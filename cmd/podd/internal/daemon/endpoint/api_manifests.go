package endpoint

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest"
	"podd/manifest/apidir"
	"podd/manifest/decode"
	"podd/reconcile"
	"podd/server"
	"podd/server/kube/write"
)

// apiManifests implements write.ManifestStore with the directory that the API writes.
type apiManifests struct {
	dir           *apidir.Dir
	router        *reconcile.Router
	decodeOptions decode.Options // the options of the source that reads dir
}

// NewManifestStore returns a ManifestStore that reads and writes the manifests in dir.
// decodeOptions are the options with which the source of dir decodes the manifests.
func NewManifestStore(dir *apidir.Dir, router *reconcile.Router, decodeOptions decode.Options) write.ManifestStore {
	return apiManifests{dir, router, decodeOptions}
}

var _ write.ManifestStore = apiManifests{}

// newObjectID returns the ID of the object with a kind and key.
func newObjectID(kind string, key server.Key) apidir.ObjectID {
	return apidir.ObjectID{Kind: kind, Namespace: key.Namespace, Name: key.Name}
}

// Path implements write.ManifestStore.
func (m apiManifests) Path(kind string, key server.Key) string {
	return m.dir.Path(newObjectID(kind, key))
}

// Read implements write.ManifestStore.
func (m apiManifests) Read(kind string, key server.Key) ([]byte, error) {
	return m.dir.Read(newObjectID(kind, key))
}

// Write implements write.ManifestStore.
func (m apiManifests) Write(kind string, key server.Key, text []byte) error {
	return m.dir.Write(newObjectID(kind, key), text)
}

// Remove implements write.ManifestStore.
func (m apiManifests) Remove(kind string, key server.Key) error {
	return m.dir.Remove(newObjectID(kind, key))
}

// Delete implements write.ManifestStore.
func (m apiManifests) Delete(ctx context.Context, pod server.Key, uid types.UID, grace time.Duration) error {
	return m.router.Delete(ctx, types.NamespacedName(pod), uid, grace)
}

// CancelDelete implements write.ManifestStore.
func (m apiManifests) CancelDelete(ctx context.Context, pod server.Key, uid types.UID) error {
	return m.router.CancelDelete(ctx, types.NamespacedName(pod), uid)
}

// Parse implements write.ManifestStore.
func (m apiManifests) Parse(kind string, text []byte) write.ParsedManifest {
	if len(text) > apidir.MaxSize {
		return write.ParsedManifest{Causes: []metav1.StatusCause{{
			Type:    metav1.CauseType(field.ErrorTypeTooLong),
			Message: fmt.Sprintf("too large to be stored as a manifest file: %d bytes (limit %d)", len(text), apidir.MaxSize),
		}}}
	}
	f := decode.File(text, m.decodeOptions)
	var c write.ParsedManifest
	for _, p := range f.Problems {
		if p.Severity == manifest.Error {
			c.Causes = append(c.Causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: p.FieldPath, Message: p.Message})
		} else {
			c.Warnings = append(c.Warnings, p.Text())
		}
	}
	if f.HasRefusedDocument() {
		return c
	}
	o := &f.Objects
	switch {
	case kind == "Pod" && len(f.Pods) == 1:
		c.Object, c.Version = f.Pods[0].Object, f.Pods[0].Hash
	case kind == "ConfigMap":
		c.Object = onlyElement(o.ConfigMaps)
	case kind == "Secret":
		c.Object = onlyElement(o.Secrets)
	case kind == "PersistentVolumeClaim":
		c.Object = onlyElement(o.Claims)
	case kind == "PersistentVolume":
		c.Object = onlyElement(o.Volumes)
	case kind == "ClusterTrustBundle":
		c.Object = onlyElement(o.TrustBundles)
	case kind == "CSIDriver":
		c.Object = onlyElement(o.CSIDrivers)
	}
	return c
}

// onlyElement returns the only element of a map, or nil if the map is empty or has several
// elements.
func onlyElement[T server.Object](objects map[types.NamespacedName]T) server.Object {
	for _, o := range objects {
		return o
	}
	return nil
}
