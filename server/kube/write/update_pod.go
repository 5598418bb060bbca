package write

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

// mutableFieldsMessage is the API server's error for a change of a pod field that must not be
// changed. It lists the fields that may be changed.
const mutableFieldsMessage = "pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, " +
	"`spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing tolerations), " +
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative), and the labels and annotations; " +
	"delete the pod and create it again for others"

// newUpdatedPod returns a copy of the stored pod that contains the allowed changes. oldPod and
// newPod are the pod before and after the change, both with defaults. newUpdatedPod returns an
// error if fields differ that must not be changed.
func (c *call) newUpdatedPod(s storedObject, oldPod, newPod *v1.Pod) (server.Object, error) {
	if err := c.checkPodUpdate(s, oldPod, newPod); err != nil {
		return nil, err
	}
	updatedPod := s.fileObject.DeepCopyObject().(*v1.Pod)
	updatedPod.Labels, updatedPod.Annotations = newPod.Labels, newPod.Annotations
	if !equality.Semantic.DeepEqual(oldPod.Spec.Tolerations, newPod.Spec.Tolerations) {
		updatedPod.Spec.Tolerations = newPod.Spec.Tolerations
	}
	updatedPod.Spec.ActiveDeadlineSeconds = newPod.Spec.ActiveDeadlineSeconds
	for n := range updatedPod.Spec.InitContainers {
		updatedPod.Spec.InitContainers[n].Image = newPod.Spec.InitContainers[n].Image
	}
	for n := range updatedPod.Spec.Containers {
		updatedPod.Spec.Containers[n].Image = newPod.Spec.Containers[n].Image
	}
	return updatedPod, nil
}

// checkAppArmorProfiles rejects changes of AppArmor annotations, because a container keeps
// the profile that it was started with.
func (c *call) checkAppArmorProfiles(s storedObject, oldPod, newPod *v1.Pod) error {
	for _, side := range []struct {
		annotations, otherAnnotations map[string]string
		reason                        string
	}{
		{oldPod.Annotations, newPod.Annotations, "may not remove or update AppArmor annotations"},
		{newPod.Annotations, oldPod.Annotations, "may not add AppArmor annotations"},
	} {
		for _, key := range slices.Sorted(maps.Keys(side.annotations)) {
			value, ok := side.otherAnnotations[key]
			if strings.HasPrefix(key, v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix) && (!ok || value != side.annotations[key]) {
				return c.newForbiddenError(s, fmt.Sprintf("metadata.annotations[%s]", key), side.reason)
			}
		}
	}
	return nil
}

func (c *call) checkPodUpdate(s storedObject, oldPod, newPod *v1.Pod) error {
	if err := c.checkAppArmorProfiles(s, oldPod, newPod); err != nil {
		return err
	}
	if len(oldPod.Spec.Containers) != len(newPod.Spec.Containers) || len(oldPod.Spec.InitContainers) != len(newPod.Spec.InitContainers) {
		return c.newForbiddenError(s, "spec.containers", "pod updates may not add or remove containers")
	}
	oldDeadline, newDeadline := oldPod.Spec.ActiveDeadlineSeconds, newPod.Spec.ActiveDeadlineSeconds
	switch {
	case oldDeadline != nil && newDeadline == nil:
		return c.newForbiddenError(s, "spec.activeDeadlineSeconds", "must not update from a positive integer to nil value")
	case oldDeadline != nil && *newDeadline > *oldDeadline:
		return c.newForbiddenError(s, "spec.activeDeadlineSeconds", "must be less than or equal to previous value")
	}
	for _, t := range oldPod.Spec.Tolerations {
		isSameToleration := func(u v1.Toleration) bool {
			u.TolerationSeconds = t.TolerationSeconds // only this field of a toleration may be changed
			return equality.Semantic.DeepEqual(t, u)
		}
		if !slices.ContainsFunc(newPod.Spec.Tolerations, isSameToleration) {
			return c.newForbiddenError(s, "spec.tolerations", "existing toleration can not be modified or removed")
		}
	}
	withOldFields := newPod.DeepCopy()
	withOldFields.Spec.ActiveDeadlineSeconds, withOldFields.Spec.Tolerations = oldDeadline, oldPod.Spec.Tolerations
	for n := range withOldFields.Spec.InitContainers {
		withOldFields.Spec.InitContainers[n].Image = oldPod.Spec.InitContainers[n].Image
	}
	for n := range withOldFields.Spec.Containers {
		withOldFields.Spec.Containers[n].Image = oldPod.Spec.Containers[n].Image
	}
	field := firstSpecDifference(oldPod.Spec, withOldFields.Spec)
	if field == "" {
		return nil
	}
	if copyCPUAndMemory(&withOldFields.Spec, &oldPod.Spec); firstSpecDifference(oldPod.Spec, withOldFields.Spec) == "" {
		return c.newForbiddenError(s, field, mutableFieldsMessage+"; to change cpu and memory, use \"kubectl patch --subresource resize\"")
	}
	return c.newForbiddenError(s, field, mutableFieldsMessage)
}

// newResizedPod returns a copy of the stored pod with changed resources for CPU and memory. oldPod
// and newPod are the pod before and after the change, both with defaults. newResizedPod returns an
// error if any other field differs. When podd reads the pod, it resizes the running containers.
func (c *call) newResizedPod(s storedObject, oldPod, newPod *v1.Pod) (server.Object, error) {
	if len(oldPod.Spec.Containers) != len(newPod.Spec.Containers) || len(oldPod.Spec.InitContainers) != len(newPod.Spec.InitContainers) {
		return nil, c.newForbiddenError(s, "spec.containers", "containers may not be added or removed on resize")
	}
	withOldAmounts := newPod.DeepCopy()
	resizedPod := s.fileObject.DeepCopyObject().(*v1.Pod)
	for _, list := range []struct{ source, target []v1.Container }{
		{withOldAmounts.Spec.InitContainers, resizedPod.Spec.InitContainers},
		{withOldAmounts.Spec.Containers, resizedPod.Spec.Containers},
	} {
		for n := range list.target {
			list.target[n].Resources = list.source[n].Resources
		}
	}
	copyCPUAndMemory(&withOldAmounts.Spec, &oldPod.Spec)
	if field := firstSpecDifference(oldPod.Spec, withOldAmounts.Spec); field != "" {
		return nil, c.newForbiddenError(s, field, "only cpu and memory resources are mutable")
	}
	return resizedPod, nil
}

// copyCPUAndMemory sets the CPU and memory of each container in spec to those of the container at
// the same position in source. The two pod specs must have equally many containers.
func copyCPUAndMemory(spec, source *v1.PodSpec) {
	for n := range spec.InitContainers {
		spec.InitContainers[n].Resources = withCPUAndMemory(spec.InitContainers[n].Resources, source.InitContainers[n].Resources)
	}
	for n := range spec.Containers {
		spec.Containers[n].Resources = withCPUAndMemory(spec.Containers[n].Resources, source.Containers[n].Resources)
	}
}

// withCPUAndMemory returns a copy of r that has the CPU and memory of source.
func withCPUAndMemory(r, source v1.ResourceRequirements) v1.ResourceRequirements {
	r = *r.DeepCopy()
	for _, list := range []struct {
		target *v1.ResourceList
		source v1.ResourceList
	}{{&r.Limits, source.Limits}, {&r.Requests, source.Requests}} {
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			delete(*list.target, name)
			if q, ok := list.source[name]; ok {
				if *list.target == nil {
					*list.target = v1.ResourceList{}
				}
				(*list.target)[name] = q
			}
		}
	}
	return r
}

// newForbiddenError returns the error for a field that must not be changed.
func (c *call) newForbiddenError(s storedObject, field, reason string) error {
	return c.newInvalidError(s.key.Name, metav1.StatusCause{
		Type: metav1.CauseType("FieldValueForbidden"), Field: field, Message: fmt.Sprintf("Forbidden: %s", reason),
	})
}
