package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/cmd/podd/internal/config"
	"podd/manifest"
	"podd/manifest/source"
	"podd/manifest/written"
	"podd/reconcile"
	"podd/server"
	"podd/server/kube"
)

// apiManifests is the directory that the Kubernetes API writes.
type apiManifests struct {
	dir    *written.Dir
	router *reconcile.Router
	read   manifest.Options // as its source reads it
}

// openWritten is nil when none is configured.
func openWritten(cfg *config.Config) (*written.Dir, error) {
	if cfg.APIManifestDir == "" {
		return nil, nil
	}
	if err := readOnce(cfg); err != nil {
		return nil, err
	}
	vanished := writtenSource(cfg, source.Options{Cache: cacheDir(cfg)}).Keeps()
	return written.Open(cfg.APIManifestDir, vanished)
}

var _ kube.Manifests = apiManifests{}

func writtenObject(kind string, key server.Key) written.Object {
	return written.Object{Kind: kind, Namespace: key.Namespace, Name: key.Name}
}

// Path implements kube.Manifests.
func (m apiManifests) Path(kind string, key server.Key) string {
	return m.dir.Path(writtenObject(kind, key))
}

// Read implements kube.Manifests.
func (m apiManifests) Read(kind string, key server.Key) ([]byte, error) {
	return m.dir.Read(writtenObject(kind, key))
}

// Write implements kube.Manifests.
func (m apiManifests) Write(kind string, key server.Key, text []byte) error {
	return m.dir.Write(writtenObject(kind, key), text)
}

// Remove implements kube.Manifests.
func (m apiManifests) Remove(kind string, key server.Key) error {
	return m.dir.Remove(writtenObject(kind, key))
}

// End implements kube.Manifests.
func (m apiManifests) End(ctx context.Context, pod server.Key, uid types.UID, grace time.Duration) error {
	return m.router.Delete(ctx, types.NamespacedName(pod), uid, grace)
}

// Spare implements kube.Manifests.
func (m apiManifests) Spare(ctx context.Context, pod server.Key, uid types.UID) error {
	return m.router.Spare(ctx, types.NamespacedName(pod), uid)
}

// Check implements kube.Manifests.
func (m apiManifests) Check(kind string, text []byte) kube.Checked {
	if len(text) > written.MaxSize {
		return kube.Checked{Causes: []metav1.StatusCause{{
			Type:    metav1.CauseType(field.ErrorTypeTooLong),
			Message: fmt.Sprintf("as a file it has %d bytes, and more than %d are not kept; make it smaller", len(text), written.MaxSize),
		}}}
	}
	f := manifest.Decode(text, m.read)
	var c kube.Checked
	for _, p := range f.Problems {
		if p.Severity == manifest.Error {
			c.Causes = append(c.Causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: p.Field, Message: p.Message})
		} else {
			c.Warnings = append(c.Warnings, p.What())
		}
	}
	if f.Refused() {
		return c
	}
	o := &f.Objects
	switch {
	case kind == "Pod" && len(f.Pods) == 1:
		c.Object, c.Version = f.Pods[0].Spec, f.Pods[0].Hash
	case kind == "ConfigMap":
		c.Object = only(o.ConfigMaps)
	case kind == "Secret":
		c.Object = only(o.Secrets)
	case kind == "PersistentVolumeClaim":
		c.Object = only(o.Claims)
	case kind == "PersistentVolume":
		c.Object = only(o.Volumes)
	}
	return c
}

// only is the one object of a text; nil for none.
func only[T server.Object](all map[types.NamespacedName]T) server.Object {
	for _, o := range all {
		return o
	}
	return nil
}
