package kube

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
)

// patience is how long a client is kept until podd has read what was written for
// it: milliseconds, but where the machine is busy.
const patience = 20 * time.Second

// overruled tells that podd read a file and runs something else of that name.
type overruled struct{ error }

func (o *overruled) Unwrap() error { return o.error }

// shown waits until everybody is shown what was written, and returns it: who is
// answered may read its own write.
func (c *write) shown(ctx context.Context, key server.Key, text []byte, want server.Object) (*entry, error) {
	digest, path := digest(text), c.Manifests.Path(c.res.kind, key)
	err := c.until(ctx, func(v *server.View) (bool, error) {
		n := slices.IndexFunc(v.Files, func(f server.FileView) bool { return f.Path == path })
		if n < 0 || v.Files[n].Digest != digest {
			return false, nil
		}
		if at, _, _ := c.at(c.res, key); at != path {
			return false, c.overruled(v, path, key)
		}
		return c.res.name != "pods" || showsAs(v.Pod(key), want), nil
	})
	if err != nil {
		return nil, err
	}
	i := c.i
	i.Namespace, i.Name = key.Namespace, key.Name
	return c.find(c.r, c.res, i)
}

// digest is that of a text as a View tells it.
func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// showsAs says whether a pod is shown as it is written. Ephemeral containers are in
// no manifest.
func showsAs(p *server.PodView, want server.Object) bool {
	w := want.(*v1.Pod)
	if p == nil || p.Pod.UID != w.UID {
		return false
	}
	spec := p.Pod.Spec
	spec.EphemeralContainers = nil
	return equality.Semantic.DeepEqual(p.Pod.Labels, w.Labels) &&
		equality.Semantic.DeepEqual(p.Pod.Annotations, w.Annotations) &&
		equality.Semantic.DeepEqual(p.Pod.ManagedFields, w.ManagedFields) && equality.Semantic.DeepEqual(spec, w.Spec)
}

func (c *write) overruled(v *server.View, path string, key server.Key) error {
	why := "another source has one of this name"
	for _, p := range v.Problems {
		if p.Path == path && p.Severity == server.SeverityError {
			why = p.Message
		}
	}
	return &overruled{apierrors.NewConflict(c.res.gr(), key.Name, fmt.Errorf("podd does not take it: %s", why))}
}

// until waits for a View.
func (c *write) until(ctx context.Context, shown func(*server.View) (bool, error)) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		v := c.State.View()
		if ok, err := shown(v); ok || err != nil {
			return err
		}
		select {
		case <-c.State.Changed(v.Revision):
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return errLate
		}
	}
}

var errLate = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout,
	Message: fmt.Sprintf("it is done, but podd did not show it within %v; look again", patience),
}}
