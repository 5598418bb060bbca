package resource

import (
	"encoding/json"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
	"podd/server/kube/request"
)

// Entry is an object as the API serves it from the revision Rev until the object changes. An Entry
// is immutable.
type Entry struct {
	Key server.Key
	Rev uint64
	// Object is the object with its kind and resourceVersion.
	Object server.Object
	// JSON returns the encoded object. The first call encodes it.
	JSON func() []byte
}

// NewEntry returns the entry of an item at a revision.
func (d *Definition) NewEntry(i Item, rev uint64) *Entry {
	o := d.copy(i.Object)
	if creationTime := o.GetCreationTimestamp(); d.creationTime != nil && creationTime.IsZero() {
		o.SetCreationTimestamp(d.creationTime(o))
	}
	o.GetObjectKind().SetGroupVersionKind(d.GroupVersionKind())
	o.SetResourceVersion(strconv.FormatUint(rev, 10))
	return (&Entry{Key: i.Key, Rev: rev}).WithObject(o)
}

// WithObject returns an entry for o with the key and revision of e. o must have the kind and
// the resourceVersion of the object of e.
func (e *Entry) WithObject(o server.Object) *Entry {
	return &Entry{Key: e.Key, Rev: e.Rev, Object: o, JSON: sync.OnceValue(func() []byte { return Encode(o) })}
}

// Encode encodes a Kubernetes object. It cannot fail, because all fields of Kubernetes
// objects have JSON types.
func Encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encoding a Kubernetes object: " + err.Error())
	}
	return b
}

// MetadataType is the kind and version of an object that is represented by its metadata only.
var MetadataType = metav1.TypeMeta{Kind: request.AsMetadata, APIVersion: metav1.SchemeGroupVersion.String()}

// metadataOf returns the metadata of an object as a PartialObjectMetadata.
func metadataOf(o server.Object) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: MetadataType,
		ObjectMeta: metav1.ObjectMeta{
			Name: o.GetName(), GenerateName: o.GetGenerateName(), Namespace: o.GetNamespace(), UID: o.GetUID(),
			ResourceVersion: o.GetResourceVersion(), Generation: o.GetGeneration(), CreationTimestamp: o.GetCreationTimestamp(),
			DeletionTimestamp: o.GetDeletionTimestamp(), DeletionGracePeriodSeconds: o.GetDeletionGracePeriodSeconds(),
			Labels: o.GetLabels(), Annotations: o.GetAnnotations(), OwnerReferences: o.GetOwnerReferences(), Finalizers: o.GetFinalizers(),
			ManagedFields: o.GetManagedFields(),
		},
	}
}
