package manifest

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// MatchesNode reports whether a node matches nodeSelector and the required node affinity of a pod.
// It ignores preferred affinities, because only a scheduler uses them.
func MatchesNode(pod *v1.Pod, name string, labels map[string]string) bool {
	ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(affinityNode(name, labels))
	return ok && err == nil
}

// SelectsNode reports whether a selector, which must not be nil, selects a node. A term that
// is invalid selects no node.
func SelectsNode(s *v1.NodeSelector, name string, labels map[string]string) bool {
	ok, err := nodeaffinity.NewLazyErrorNodeSelector(s).Match(affinityNode(name, labels))
	return ok && err == nil
}

// affinityNode returns a Node with the given name and labels, the only properties that a node
// affinity can select.
func affinityNode(name string, labels map[string]string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}
