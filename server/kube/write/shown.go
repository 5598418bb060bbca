package write

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
	"podd/server/kube/resource"
)

// shownTimeout is the maximum time for which a request waits until podd has read the written file.
// Usually podd reads the file within milliseconds.
const shownTimeout = 20 * time.Second

// An overruledError means that podd has read a file, but uses an object with the same kind and name
// from another source.
type overruledError struct{ error }

func (o *overruledError) Unwrap() error { return o.error }

// waitUntilShown waits until the View contains writtenObject and returns the entry of the object, so
// that clients can read their own writes.
func (c *call) waitUntilShown(ctx context.Context, key server.Key, text []byte, writtenObject server.Object) (*resource.Entry, error) {
	digest, path := digest(text), c.manifests.Path(c.res.Kind, key)
	err := c.waitFor(ctx, func(v *server.View) (bool, error) {
		n := slices.IndexFunc(v.Files, func(f server.FileView) bool { return f.Path == path })
		if n < 0 || v.Files[n].Digest != digest {
			return false, nil
		}
		if originPath, _, _ := c.origin(c.res, key); originPath != path {
			return false, c.newOverruledError(v, path, key)
		}
		return c.res.Name != "pods" || isShown(v.Pod(key), writtenObject), nil
	})
	if err != nil {
		return nil, err
	}
	return c.objects.Find(c.r.Context(), c.res, key)
}

// digest returns the digest of a text in the format that a View uses.
func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// isShown reports whether p, a pod in the View, is equal to writtenObject. Ephemeral containers are
// ignored, because they are not in manifests.
func isShown(p *server.PodView, writtenObject server.Object) bool {
	w := writtenObject.(*v1.Pod)
	if p == nil || p.Pod.UID != w.UID {
		return false
	}
	spec := p.Pod.Spec
	spec.EphemeralContainers = nil
	return equality.Semantic.DeepEqual(p.Pod.Labels, w.Labels) &&
		equality.Semantic.DeepEqual(p.Pod.Annotations, w.Annotations) &&
		equality.Semantic.DeepEqual(p.Pod.ManagedFields, w.ManagedFields) && equality.Semantic.DeepEqual(spec, w.Spec)
}

func (c *call) newOverruledError(v *server.View, path string, key server.Key) error {
	reason := "another source defines an object with this name and takes precedence"
	for _, p := range v.Problems {
		if p.Path == path && p.Severity == server.SeverityError {
			reason = p.Message
		}
	}
	return &overruledError{apierrors.NewConflict(c.res.GroupResource(), key.Name, fmt.Errorf("podd does not use the object: %s", reason))}
}

// waitFor calls isDone with each new View until isDone returns true or an error.
func (c *call) waitFor(ctx context.Context, isDone func(*server.View) (bool, error)) error {
	timer := time.NewTimer(shownTimeout)
	defer timer.Stop()
	for {
		v := c.state.View()
		if ok, err := isDone(v); ok || err != nil {
			return err
		}
		select {
		case <-c.state.Changed(v.Revision):
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return errNotShown
		}
	}
}

var errNotShown = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout,
	Message: fmt.Sprintf("the change is stored, but podd did not apply it within %v; check again later", shownTimeout),
}}
