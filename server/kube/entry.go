package kube

import (
	"encoding/json"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

// entry is an object as the API shows it since one revision. It is immutable.
type entry struct {
	key server.Key
	rev uint64
	// object has its kind and resourceVersion.
	object server.Object
	// encoded is shared by all whom it is sent to.
	encoded func() []byte
}

func (r *resource) entry(i item, rev uint64) *entry {
	o := r.copy(i.object)
	if created := o.GetCreationTimestamp(); r.since != nil && created.IsZero() {
		o.SetCreationTimestamp(r.since(o))
	}
	o.GetObjectKind().SetGroupVersionKind(r.gvk())
	o.SetResourceVersion(strconv.FormatUint(rev, 10))
	e := &entry{key: i.key, rev: rev, object: o}
	e.encoded = sync.OnceValue(func() []byte { return encode(o) })
	return e
}

// at is the same object at another revision: what is told of it when it leaves.
func (e *entry) at(r *resource, rev uint64) *entry { return r.entry(item{e.key, e.object}, rev) }

// encode never fails: the objects are Kubernetes' own.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encoding an object of Kubernetes: " + err.Error())
	}
	return b
}

// metadata is all that some clients want of an object.
func metadata(o server.Object) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: metav1.SchemeGroupVersion.String()},
		ObjectMeta: metav1.ObjectMeta{
			Name: o.GetName(), GenerateName: o.GetGenerateName(), Namespace: o.GetNamespace(), UID: o.GetUID(),
			ResourceVersion: o.GetResourceVersion(), Generation: o.GetGeneration(), CreationTimestamp: o.GetCreationTimestamp(),
			DeletionTimestamp: o.GetDeletionTimestamp(), DeletionGracePeriodSeconds: o.GetDeletionGracePeriodSeconds(),
			Labels: o.GetLabels(), Annotations: o.GetAnnotations(), OwnerReferences: o.GetOwnerReferences(), Finalizers: o.GetFinalizers(),
			ManagedFields: o.GetManagedFields(),
		},
	}
}
