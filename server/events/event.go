package events

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// component is the source of all events. It is the kubelet's name, because programs search
// for events of nodes by this name.
const component = "kubelet"

// Events returns the newest revision and the retained events with a revision greater than
// afterRevision, in the order of their revisions. An event keeps its name when its count increases.
// The caller may modify the returned events.
func (l *Log) Events(afterRevision uint64) (newer []*v1.Event, revision uint64) {
	newerSeries, revision := l.seriesSince(afterRevision)
	for i := range newerSeries {
		newer = append(newer, l.toEvent(&newerSeries[i]))
	}
	return newer, revision
}

// seriesSince returns the newest revision and copies of the series with a revision greater than
// afterRevision, the oldest first.
func (l *Log) seriesSince(afterRevision uint64) (newer []series, revision uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []series
	for e := l.allSeries.Back(); e != nil; e = e.Prev() {
		s := e.Value.(*series)
		if s.revision <= afterRevision {
			break
		}
		all = append(all, *s)
	}
	slices.Reverse(all)
	return all, l.revision
}

// toEvent converts a series to the API's type.
func (l *Log) toEvent(s *series) *v1.Event {
	reference := l.reference(s)
	namespace := reference.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // the namespace for events of a node, which has no namespace
	}
	name := reference.Name + "." + strconv.FormatInt(s.nameTimestamp, 16)
	return &v1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, UID: eventUID(l.o.Node, namespace, name),
			ResourceVersion:   strconv.FormatUint(s.revision, 10),
			CreationTimestamp: metav1.NewTime(s.firstTime),
			Annotations:       maps.Clone(s.Annotations),
		},
		InvolvedObject: reference,
		Reason:         s.Reason, Message: s.Message, Type: s.Type,
		Source:         v1.EventSource{Component: component, Host: l.o.Node},
		FirstTimestamp: metav1.NewTime(s.firstTime), LastTimestamp: metav1.NewTime(s.Time), Count: s.count,
		ReportingController: component, ReportingInstance: l.o.Node,
	}
}

func (l *Log) reference(s *series) v1.ObjectReference {
	if s.Pod == (types.NamespacedName{}) {
		// The UID of the Node is not available here. kubectl also searches for events with the name of
		// the Node as the UID, because kubelets before Kubernetes 1.37 used the name. In a cluster,
		// package eventsender replaces the name.
		return v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: l.o.Node, UID: types.UID(l.o.Node)}
	}
	return v1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: s.Pod.Namespace, Name: s.Pod.Name, UID: s.UID, FieldPath: s.FieldPath,
	}
}

// eventUID returns the UID of the event with this name on a node. The UID is derived from
// the arguments, so that it is the same in every call.
func eventUID(node, namespace, name string) types.UID {
	sum := sha256.Sum256([]byte(node + "/" + namespace + "/" + name))
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}
