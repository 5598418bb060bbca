package kube

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"podd/server"
	"podd/server/kube/request"
)

// deletion is what v1.DeleteOptions ask for.
type deletion struct {
	grace *int64 // nil: the pod's own
	only  *metav1.Preconditions
}

// longestGrace keeps a client's number a duration.
const longestGrace = int64(100 * 365 * 24 * 3600)

func (c *write) deletion() (deletion, error) {
	o, err := c.deleteOptions()
	if err == nil {
		err = fromQuery(c.r.URL.Query(), o)
	}
	if err != nil {
		return deletion{}, err
	}
	dry, err := dryRun(o.DryRun)
	if err != nil {
		return deletion{}, err
	}
	c.dry = c.dry || dry
	switch p := o.PropagationPolicy; {
	case p == nil, *p == metav1.DeletePropagationBackground, *p == metav1.DeletePropagationForeground, *p == metav1.DeletePropagationOrphan:
	default: // nothing depends on these objects
		return deletion{}, apierrors.NewBadRequest(fmt.Sprintf("propagationPolicy: %.40q is none of Background, Foreground and Orphan", *p))
	}
	if g := o.GracePeriodSeconds; g != nil && *g < 0 {
		*g = 1 // as an apiserver takes it
	} else if g != nil {
		*g = min(*g, longestGrace)
	}
	return deletion{o.GracePeriodSeconds, o.Preconditions}, nil
}

func (c *write) deleteOptions() (*metav1.DeleteOptions, error) {
	o := &metav1.DeleteOptions{}
	body, err := readBody(c.w, c.r)
	if err != nil || len(body) == 0 {
		return o, err
	}
	mediaType, _, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	switch mediaType {
	case "", runtime.ContentTypeJSON:
		err = kjson.UnmarshalCaseSensitivePreserveInts(body, o)
	case mediaYAML:
		err = yaml.Unmarshal(body, o)
	case runtime.ContentTypeProtobuf:
		err = decodeProtobuf(body, o)
	default:
		return nil, unsupported(runtime.ContentTypeJSON, mediaYAML, runtime.ContentTypeProtobuf)
	}
	if err == nil && o.Kind != "" && o.Kind != "DeleteOptions" {
		err = fmt.Errorf("it is a %.40q and no DeleteOptions", o.Kind)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest("reading the body: " + err.Error())
	}
	return o, nil
}

// fromQuery adds what the path's query asks for, where the body does not.
func fromQuery(q url.Values, o *metav1.DeleteOptions) error {
	if s := q.Get("gracePeriodSeconds"); s != "" && o.GracePeriodSeconds == nil {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("gracePeriodSeconds: %.40q is no number", s))
		}
		o.GracePeriodSeconds = &n
	}
	if s := q.Get("propagationPolicy"); s != "" && o.PropagationPolicy == nil {
		o.PropagationPolicy = (*metav1.DeletionPropagation)(&s)
	}
	return nil
}

func (c *write) delete() error {
	d, err := c.deletion()
	if err != nil {
		return err
	}
	done, err := c.turn()
	if err != nil {
		return err
	}
	defer done()
	e, err := c.own(c.key())
	if err != nil {
		return err
	}
	if err := c.meetsPreconditions(e, d.only); err != nil {
		return err
	}
	left, err := c.remove(d, e)
	switch {
	case err != nil:
		return err
	case c.res.name == "pods":
		return c.reply(http.StatusOK, left[0])
	}
	server.Reply(c.w, http.StatusOK, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: e.key.Name, Group: c.res.group, Kind: c.res.name, UID: e.object.GetUID()},
	})
	return nil
}

func (c *write) meetsPreconditions(e *entry, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	if has := e.object.GetUID(); p.UID != nil && *p.UID != has {
		return apierrors.NewConflict(c.res.gr(), e.key.Name, fmt.Errorf("precondition failed: UID in precondition: %.80s, UID in object meta: %s", *p.UID, has))
	}
	if has := e.object.GetResourceVersion(); p.ResourceVersion != nil && *p.ResourceVersion != has {
		return apierrors.NewConflict(c.res.gr(), e.key.Name, fmt.Errorf("precondition failed: ResourceVersion in precondition: %.80s, ResourceVersion in object meta: %s", *p.ResourceVersion, has))
	}
	return nil
}

// remove takes the files of objects away, and returns what is left of each: a pod
// that ends, or the object as it was.
func (c *write) remove(d deletion, all ...*entry) ([]*entry, error) {
	if c.dry {
		return all, nil
	}
	var failed []error
	var removed []*entry
	for _, e := range all {
		if err := c.removeFile(e, d); err != nil {
			failed = append(failed, err)
			continue
		}
		removed = append(removed, e)
	}
	err := c.until(c.r.Context(), func(v *server.View) (bool, error) {
		removed = slices.DeleteFunc(removed, func(e *entry) bool { return c.gone(v, e) })
		return len(removed) == 0, nil
	})
	if err := errors.Join(append(failed, err)...); err != nil {
		return nil, err
	}
	left := slices.Clone(all)
	for n, e := range all {
		i := c.i
		i.Namespace, i.Name = e.key.Namespace, e.key.Name
		if now, err := c.find(c.r, c.res, i); err == nil && now.object.GetUID() == e.object.GetUID() {
			left[n] = now
		}
	}
	return left, nil
}

func (c *write) removeFile(e *entry, d deletion) error {
	if c.res.name == "pods" && d.grace != nil {
		if err := c.Manifests.End(c.r.Context(), e.key, e.object.GetUID(), time.Duration(*d.grace)*time.Second); err != nil {
			return fmt.Errorf("deleting pod %q: %w", e.key.Name, err)
		}
	}
	if err := c.Manifests.Remove(c.res.kind, e.key); err != nil {
		if c.res.name == "pods" && d.grace != nil {
			// It runs on, and its next end is its own; also for a client that is gone.
			err = errors.Join(err, c.Manifests.Spare(context.WithoutCancel(c.r.Context()), e.key, e.object.GetUID()))
		}
		return fmt.Errorf("deleting %s %q: %w", c.res.singular, e.key.Name, err)
	}
	return nil
}

// gone says whether everybody is shown that an object goes.
func (c *write) gone(v *server.View, e *entry) bool {
	path := c.Manifests.Path(c.res.kind, e.key)
	if c.res.name != "pods" {
		return !slices.ContainsFunc(v.Files, func(f server.FileView) bool { return f.Path == path })
	}
	p := v.Pod(e.key)
	return p == nil || p.Pod.DeletionTimestamp != nil || p.Pod.UID != e.object.GetUID()
}

// deleteCollection removes all that are selected, or none where one is in a file
// that is not the API's, or is another than who asks expects.
func (c *write) deleteCollection() error {
	d, err := c.deletion()
	if err != nil {
		return err
	}
	s, err := selector(c.res, c.i.Namespace, c.r.URL.Query())
	if err != nil {
		return err
	}
	done, err := c.turn()
	if err != nil {
		return err
	}
	defer done()
	entries, rev := c.store.list(c.res)
	entries = slices.DeleteFunc(slices.Clone(entries), func(e *entry) bool { return !s.takes(e.object) })
	for _, e := range entries {
		if _, err := c.own(e.key); err != nil {
			return err
		}
		if err := c.meetsPreconditions(e, d.only); err != nil {
			return err
		}
	}
	left, err := c.remove(d, entries...)
	if err != nil {
		return err
	}
	for _, e := range left {
		rev = max(rev, e.rev)
	}
	reply(c.w, listOf(c.res.kind+"List", c.res.gvk().GroupVersion().String(), strconv.FormatUint(rev, 10), left, func(e *entry) []byte {
		return one(c.form, e, request.Include(c.r), false)
	}), nil)
	return nil
}
