package resource

import (
	"strconv"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	"podd/server"
)

// Fields returns the fields of an object that field selectors can refer to.
func (d *Definition) Fields(o server.Object) fields.Set {
	set := d.selectableFields(o)
	if set == nil {
		set = fields.Set{}
	}
	set["metadata.name"] = o.GetName()
	if d.Namespaced {
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

func trustBundleFields(o server.Object) fields.Set {
	return fields.Set{"spec.signerName": o.(*certificates.ClusterTrustBundle).Spec.SignerName}
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
