package configsource

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/watchable"
	"podd/manifest"
)

const (
	// Annotation is an annotation of the Node. It names the ConfigMap that contains the
	// configuration of the node, as NAMESPACE/NAME or NAMESPACE/NAME/KEY.
	Annotation = "podd/config-source"
	// defaultConfigKey is the key of the configuration if the annotation contains none. Kubelets before
	// 1.24 used this key, too.
	defaultConfigKey = "kubelet"
	// MaxSize is the maximum length of a configuration, in bytes. API servers limit a ConfigMap to
	// this size.
	MaxSize = 1 << 20
)

// A Source is the ConfigMap that the annotation podd/config-source of the Node names. The zero
// value means that the Node has no such annotation.
type Source struct {
	// Namespace, Name and Key are the parts of the annotation. They are "" if the annotation is invalid.
	// If the annotation contains no key, Key is "kubelet".
	Namespace, Name, Key string
	UID                  types.UID // "" if the ConfigMap was not found or not read
	ResourceVersion      string    // "" if the ConfigMap was not found or not read
	Data                 string    // the content of Key, which may be ""; "" if Err is set
	Err                  string    // the reason why the content is not available, for users; "" if Data is valid
}

// parse returns the Source for the annotation of n, without the content of the
// ConfigMap. If n has no such annotation, it returns the zero value. If the annotation is invalid, only
// Err is set.
func parse(n *v1.Node) Source {
	value, exists := n.Annotations[Annotation]
	if !exists {
		return Source{}
	}
	newInvalid := func(format string, args ...any) Source {
		return Source{Err: fmt.Sprintf("annotation %s of node %s: \"%s\": ", Annotation, n.Name, apiserver.Sanitize(value)) + fmt.Sprintf(format, args...)}
	}
	parts := strings.SplitN(value, "/", 4) // an annotation may be long; more than three parts are invalid
	if len(parts) == 2 {
		parts = append(parts, defaultConfigKey)
	}
	if len(parts) != 3 {
		return newInvalid("must be NAMESPACE/NAME or NAMESPACE/NAME/KEY")
	}
	s := Source{Namespace: parts[0], Name: parts[1], Key: parts[2]}
	for _, part := range []struct {
		name   string
		errors []string
	}{
		{"namespace", apivalidation.ValidateNamespaceName(s.Namespace, false)},
		{"name", apivalidation.NameIsDNSSubdomain(s.Name, false)},
		{"key", validation.IsConfigMapKey(s.Key)},
	} {
		if len(part.errors) > 0 {
			return newInvalid("invalid %s: %s", part.name, strings.Join(part.errors, ", "))
		}
	}
	return s
}

// withContent returns s with the content of object, which is the ConfigMap, or nil if the ConfigMap does
// not exist.
func (s Source) withContent(object *v1.ConfigMap) Source {
	if object == nil {
		s.Err = fmt.Sprintf("ConfigMap %s/%s does not exist; create it, or remove the annotation %s from the Node", s.Namespace, s.Name, Annotation)
		return s
	}
	s.UID, s.ResourceVersion = object.UID, object.ResourceVersion
	content, exists := object.Data[s.Key]
	switch {
	case !exists:
		s.Err = fmt.Sprintf("ConfigMap %s/%s has no key %q; add the key to data, or name another key in the annotation %s of the Node", s.Namespace, s.Name, s.Key, Annotation)
	case len(content) > MaxSize:
		s.Err = fmt.Sprintf("key %q of ConfigMap %s/%s is %d bytes long; must be at most %d", s.Key, s.Namespace, s.Name, len(content), MaxSize)
	default:
		s.Data = content
	}
	return s
}

// withDenial returns s with the error of a forbidden request. node is the name of the Node. The node
// authorizer of the API server permits a node to read only the ConfigMaps of its pods.
func (s Source) withDenial(err error, node string) Source {
	s.Err = fmt.Sprintf("reading ConfigMap %s/%s: %s; add a Role and a RoleBinding to namespace %[1]s that allow user system:node:%[4]s to get, list and watch this ConfigMap",
		s.Namespace, s.Name, apiserver.Sanitize(apiserver.WithoutHost(err).Error()), node)
	return s
}

// A Follower calls OnChange when the annotation of the Node, or the ConfigMap that it names, has
// changed since the last call.
type Follower struct {
	NodeName string                     // name of the Node
	Nodes    *apiserver.Store[*v1.Node] // contains the Node if it exists
	// OnChange is called for the first time after the Node was read, also if the Node has no annotation. An
	// outage of the API server and the deletion of the Node cause no call. If changes are fast, some of them
	// may be skipped. Calls are sequential. A call that blocks delays later calls and the end of Run.
	OnChange func(Source)

	last *Source // the argument of the last call of OnChange, or nil before the first call
}

// Run follows the annotation and the ConfigMap with the client api until ctx is done. It must not be called
// concurrently. While the Node does not exist, the last annotation applies, because the deletion of the Node
// does not mean that a user has removed the annotation. Run calls report after each attempt to list or
// watch the ConfigMap; the error is nil after a success.
func (f *Follower) Run(ctx context.Context, api *apiserver.Client, report func(context.Context, error)) {
	for ctx.Err() == nil {
		n, changed := f.Nodes.Find(types.NamespacedName{Name: f.NodeName})
		if n != nil {
			f.followConfigMap(ctx, api, parse(n), report)
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// followConfigMap calls OnChange when the ConfigMap changes. s is the result of
// parse. followConfigMap returns when ctx is done or the Node has another annotation.
func (f *Follower) followConfigMap(ctx context.Context, api *apiserver.Client, s Source, reportProblem func(context.Context, error)) {
	reportProblem(ctx, nil) // the problem of the previous ConfigMap or connection no longer applies
	var w configMapWatch
	if s.Name != "" {
		stop := w.start(ctx, api, s, reportProblem)
		defer stop()
	}
	for {
		n, nodeChanged := f.Nodes.Find(types.NamespacedName{Name: f.NodeName})
		if n != nil && parse(n) != s {
			return
		}
		configMaps, configMapsChanged := w.configMaps.Get()
		watchCount, watchCountChanged := w.watchCount.Get()
		denial, denialChanged := w.denial.Get()
		switch {
		case s.Name == "":
			f.notify(s)
		case denial.err != nil && denial.watchCount == watchCount:
			f.notify(s.withDenial(denial.err, f.NodeName))
		case configMaps.ListCount > 0:
			f.notify(s.withContent(configMaps.Items[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}]))
		}
		select {
		case <-nodeChanged:
		case <-configMapsChanged:
		case <-watchCountChanged:
		case <-denialChanged:
		case <-ctx.Done():
			return
		}
	}
}

// notify calls OnChange unless s is the argument of the last call.
func (f *Follower) notify(s Source) {
	if f.last == nil || *f.last != s {
		f.last = &s
		f.OnChange(s)
	}
}

// A configMapWatch lists and watches one ConfigMap with a reflector. Unlike the watches for pods, it
// continues if the ConfigMap is immutable, because a user may delete the ConfigMap and create it again
// with other content.
type configMapWatch struct {
	configMaps apiserver.Store[*v1.ConfigMap]
	watchCount watchable.Value[int] // number of watches that have begun
	denial     watchable.Value[denial]
	// reportProblem reports the result of an attempt as a problem of the connection; nil is a success.
	reportProblem func(context.Context, error)

	// deniedSince is the time of the first 403 response after the watch deniedWatchCount. Only report uses
	// these fields.
	deniedSince      time.Time
	deniedWatchCount int
}

// A denial is the error of forbidden requests. It applies until another watch begins.
type denial struct {
	err        error // nil if no request was forbidden
	watchCount int   // configMapWatch.watchCount at the time of the error
}

// authorizerStartLag is the time in which an API server may forbid requests after its start, because its
// authorizer has not read all Roles yet.
const authorizerStartLag = 5 * time.Second

// start starts the reflector for the ConfigMap of s. The caller must call stop, which ends the reflector
// and waits for its goroutine.
func (w *configMapWatch) start(ctx context.Context, api *apiserver.Client, s Source, reportProblem func(context.Context, error)) (stop func()) {
	w.reportProblem = reportProblem
	ref := manifest.ObjectRef{Kind: "ConfigMap", NamespacedName: types.NamespacedName{Namespace: s.Namespace, Name: s.Name}}
	f := apiserver.Reflector[*v1.ConfigMap]{Client: api, Query: api.ObjectQuery(ref), EmptyList: &v1.ConfigMapList{}, Publish: w.configMaps.Set, WatchCount: &w.watchCount, Report: w.report, WatchTimeout: apiserver.ObjectWatchTimeout}
	ctx, cancel := context.WithCancel(ctx)
	var goroutine sync.WaitGroup
	goroutine.Go(func() { f.Run(ctx) })
	return func() {
		cancel()
		goroutine.Wait()
	}
}

// report is the function Report of the reflector. It sets the denial if requests have been forbidden for
// authorizerStartLag. Other errors are problems of the connection.
func (w *configMapWatch) report(ctx context.Context, err error) {
	if !apierrors.IsForbidden(err) {
		w.reportProblem(ctx, err)
		return
	}
	w.reportProblem(ctx, nil)
	watchCount, _ := w.watchCount.Get()
	if w.deniedSince.IsZero() || w.deniedWatchCount != watchCount {
		w.deniedSince, w.deniedWatchCount = time.Now(), watchCount
	}
	if time.Since(w.deniedSince) >= authorizerStartLag {
		w.denial.Set(denial{err, watchCount})
	}
}
