package kube

import (
	"fmt"
	"net/url"
	"strconv"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"podd/server"
)

// selection is which objects a request is for.
type selection struct {
	namespace string // "" for all
	labels    labels.Selector
	fields    fields.Selector
	of        *resource
}

// selector reads a query. A field that objects cannot be selected by is refused,
// so that a filter never lets everything through.
func selector(res *resource, namespace string, q url.Values) (selection, error) {
	s := selection{namespace: namespace, of: res}
	if res.name == "namespaces" {
		s.namespace = ""
	}
	var err error
	if s.labels, err = labels.Parse(q.Get("labelSelector")); err != nil {
		return s, apierrors.NewBadRequest("labelSelector: " + err.Error())
	}
	if s.fields, err = fields.ParseSelector(q.Get("fieldSelector")); err != nil {
		return s, apierrors.NewBadRequest("fieldSelector: " + err.Error())
	}
	known := fieldsOf(res, res.blank())
	for _, r := range s.fields.Requirements() {
		if !known.Has(r.Field) {
			return s, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %.80s", r.Field))
		}
	}
	return s, nil
}

// takes says whether an object is one of them.
func (s *selection) takes(o server.Object) bool {
	return (s.namespace == "" || o.GetNamespace() == s.namespace) && s.labels.Matches(labels.Set(o.GetLabels())) &&
		(s.fields.Empty() || s.fields.Matches(fieldsOf(s.of, o)))
}

func fieldsOf(res *resource, o server.Object) fields.Set {
	set := res.extra(o)
	if set == nil {
		set = fields.Set{}
	}
	set["metadata.name"] = o.GetName()
	if res.namespaced {
		set["metadata.namespace"] = o.GetNamespace()
	}
	return set
}

func podFields(o server.Object) fields.Set {
	p := o.(*v1.Pod)
	return fields.Set{
		"spec.nodeName": p.Spec.NodeName, "spec.restartPolicy": string(p.Spec.RestartPolicy),
		"spec.schedulerName": p.Spec.SchedulerName, "spec.serviceAccountName": p.Spec.ServiceAccountName,
		"spec.hostNetwork": strconv.FormatBool(p.Spec.HostNetwork),
		"status.phase":     string(p.Status.Phase), "status.podIP": p.Status.PodIP, "status.nominatedNodeName": p.Status.NominatedNodeName,
	}
}

func nodeFields(o server.Object) fields.Set {
	return fields.Set{"spec.unschedulable": strconv.FormatBool(o.(*v1.Node).Spec.Unschedulable)}
}

func namespaceFields(o server.Object) fields.Set {
	phase := o.(*v1.Namespace).Status.Phase
	return fields.Set{"status.phase": string(phase), "name": o.GetName()}
}

func secretFields(o server.Object) fields.Set {
	return fields.Set{"type": string(o.(*v1.Secret).Type)}
}

func eventFields(o server.Object) fields.Set {
	e := o.(*v1.Event)
	i := e.InvolvedObject
	source := e.Source.Component
	if source == "" {
		source = e.ReportingController
	}
	return fields.Set{
		"involvedObject.kind": i.Kind, "involvedObject.namespace": i.Namespace, "involvedObject.name": i.Name,
		"involvedObject.uid": string(i.UID), "involvedObject.apiVersion": i.APIVersion,
		"involvedObject.resourceVersion": i.ResourceVersion, "involvedObject.fieldPath": i.FieldPath,
		"reason": e.Reason, "reportingComponent": e.ReportingController, "source": source, "type": e.Type,
	}
}
