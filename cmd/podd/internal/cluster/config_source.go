package cluster

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
	// annotationConfigSource is an annotation of the Node. It names the ConfigMap that contains the
	// configuration of the node, as NAMESPACE/NAME or NAMESPACE/NAME/KEY.
	annotationConfigSource = "podd/config-source"
	// defaultConfigKey is the key of the configuration if the annotation contains none. Kubelets before
	// 1.24 used this key, too.
	defaultConfigKey = "kubelet"
	// maxConfigSize is the maximum length of a configuration, in bytes. API servers limit a ConfigMap to
	// this size.
	maxConfigSize = 1 << 20
)

// A ConfigSource is the ConfigMap that the annotation podd/config-source of the Node names. The zero
// value means that the Node has no such annotation.
type ConfigSource struct {
	// Namespace, Name and Key are the parts of the annotation. They are "" if the annotation is invalid.
	// If the annotation contains no key, Key is "kubelet".
	Namespace, Name, Key string
	UID                  types.UID // "" if the ConfigMap was not found or not read
	ResourceVersion      string    // "" if the ConfigMap was not found or not read
	Data                 string    // the content of Key, which may be ""; "" if Err is set
	Err                  string    // the reason why the content is not available, for users; "" if Data is valid
}

// parseConfigSource returns the ConfigSource for the annotation of n, without the content of the
// ConfigMap. If n has no such annotation, it returns the zero value. If the annotation is invalid, only
// Err is set.
func parseConfigSource(n *v1.Node) ConfigSource {
	value, exists := n.Annotations[annotationConfigSource]
	if !exists {
		return ConfigSource{}
	}
	newInvalid := func(format string, args ...any) ConfigSource {
		return ConfigSource{Err: fmt.Sprintf("annotation %s of node %s: \"%s\": ", annotationConfigSource, n.Name, apiserver.Sanitize(value)) + fmt.Sprintf(format, args...)}
	}
	parts := strings.SplitN(value, "/", 4) // an annotation may be long; more than three parts are invalid
	if len(parts) == 2 {
		parts = append(parts, defaultConfigKey)
	}
	if len(parts) != 3 {
		return newInvalid("must be NAMESPACE/NAME or NAMESPACE/NAME/KEY")
	}
	s := ConfigSource{Namespace: parts[0], Name: parts[1], Key: parts[2]}
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
func (s ConfigSource) withContent(object *v1.ConfigMap) ConfigSource {
	if object == nil {
		s.Err = fmt.Sprintf("ConfigMap %s/%s does not exist; create it, or remove the annotation %s from the Node", s.Namespace, s.Name, annotationConfigSource)
		return s
	}
	s.UID, s.ResourceVersion = object.UID, object.ResourceVersion
	content, exists := object.Data[s.Key]
	switch {
	case !exists:
		s.Err = fmt.Sprintf("ConfigMap %s/%s has no key %q; add the key to data, or name another key in the annotation %s of the Node", s.Namespace, s.Name, s.Key, annotationConfigSource)
	case len(content) > maxConfigSize:
		s.Err = fmt.Sprintf("key %q of ConfigMap %s/%s is %d bytes long; must be at most %d", s.Key, s.Namespace, s.Name, len(content), maxConfigSize)
	default:
		s.Data = content
	}
	return s
}

// withDenial returns s with the error of a forbidden request. node is the name of the Node. The node
// authorizer of the API server permits a node to read only the ConfigMaps of its pods.
func (s ConfigSource) withDenial(err error, node string) ConfigSource {
	s.Err = fmt.Sprintf("reading ConfigMap %s/%s: %s; add a Role and a RoleBinding to namespace %[1]s that allow user system:node:%[4]s to get, list and watch this ConfigMap",
		s.Namespace, s.Name, apiserver.Sanitize(apiserver.WithoutHost(err).Error()), node)
	return s
}

// followConfigSource calls Options.OnConfigSource when the annotation of the Node or the ConfigMap
// changes. It returns when ctx is done. While the Node does not exist, the last annotation applies,
// because the deletion of the Node does not mean that a user has removed the annotation.
func (c *Cluster) followConfigSource(ctx context.Context, api *apiserver.Client, reportProblem func(context.Context, error)) {
	if c.o.OnConfigSource == nil {
		return
	}
	for ctx.Err() == nil {
		n, changed := c.findNode(c.o.NodeName)
		if n != nil {
			c.followConfigMap(ctx, api, parseConfigSource(n), reportProblem)
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// followConfigMap calls Options.OnConfigSource when the ConfigMap changes. s is the result of
// parseConfigSource. followConfigMap returns when ctx is done or the Node has another annotation.
func (c *Cluster) followConfigMap(ctx context.Context, api *apiserver.Client, s ConfigSource, reportProblem func(context.Context, error)) {
	reportProblem(ctx, nil) // the problem of the previous ConfigMap or connection no longer applies
	var w configMapWatch
	if s.Name != "" {
		stop := w.start(ctx, api, s, reportProblem)
		defer stop()
	}
	for {
		n, nodeChanged := c.findNode(c.o.NodeName)
		if n != nil && parseConfigSource(n) != s {
			return
		}
		configMaps, configMapsChanged := w.configMaps.Get()
		watchCount, watchCountChanged := w.watchCount.Get()
		denial, denialChanged := w.denial.Get()
		switch {
		case s.Name == "":
			c.reportConfigSource(s)
		case denial.err != nil && denial.watchCount == watchCount:
			c.reportConfigSource(s.withDenial(denial.err, c.o.NodeName))
		case configMaps.ListCount > 0:
			c.reportConfigSource(s.withContent(configMaps.Items[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}]))
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

// reportConfigSource calls Options.OnConfigSource unless s is the argument of the last call.
func (c *Cluster) reportConfigSource(s ConfigSource) {
	if c.configSource == nil || *c.configSource != s {
		c.configSource = &s
		c.o.OnConfigSource(s)
	}
}

// A configMapWatch lists and watches one ConfigMap with a reflector. Unlike the watches for pods, it continues if the ConfigMap is immutable, because a user may delete the
// ConfigMap and create it again with other content.
type configMapWatch struct {
	configMaps watchable.Value[apiserver.Snapshot[*v1.ConfigMap]]
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
func (w *configMapWatch) start(ctx context.Context, api *apiserver.Client, s ConfigSource, reportProblem func(context.Context, error)) (stop func()) {
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
