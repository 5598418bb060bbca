// Package configsource follows the ConfigMap that the annotation podd/config-source of the Node names.
//
// In kubelets before 1.24, the field spec.configSource of the Node named it. This package only reports the
// content; the caller validates and applies it. The node authorizer does not permit the watch unless a pod
// of the node uses the ConfigMap, so the cluster needs a Role for the node. If the ConfigMap is not
// available, podd reports the reason. An outage changes nothing.
package configsource
