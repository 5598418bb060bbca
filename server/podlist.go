package server

import (
	"encoding/json"
	"net/http"
	"sync"
	"weak"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodListCache responds with the pods of Views as the kubelet encodes them: in a v1.PodList with
// items that have no kind and apiVersion. It caches the newest list, so that only the pods that
// have changed since this list are encoded. If there are no requests, the garbage collector frees
// the cache. PodListCache is safe for concurrent use.
type PodListCache struct {
	mu         sync.Mutex                   // guards newestList; locked while a list is encoded, because concurrent callers need the same list
	newestList weak.Pointer[encodedPodList] // weak pointer, so that the garbage collector can free the list
}

// encodedPodList is the encoded list of one View.
type encodedPodList struct {
	view *View
	body []byte
	pods map[*PodView][]byte // slices of body
}

// Reply responds with the pods of v.
func (l *PodListCache) Reply(w http.ResponseWriter, v *View) {
	l.reply(w, v, func(p *v1.Pod) *v1.Pod { return p })
}

// reply responds with the result of convert for each pod of v. convert must always
// return the same result for the same pod.
func (l *PodListCache) reply(w http.ResponseWriter, v *View, convert func(*v1.Pod) *v1.Pod) {
	ReplyJSON(w, http.StatusOK, l.list(v, convert).body)
}

func (l *PodListCache) list(v *View, convert func(*v1.Pod) *v1.Pod) *encodedPodList {
	l.mu.Lock()
	defer l.mu.Unlock()
	previous := l.newestList.Value()
	if previous != nil && previous.view == v {
		return previous
	}
	newList := encodePods(v, previous, convert)
	l.newestList = weak.Make(newList)
	return newList
}

// encodePods encodes the pods of v. It reuses the encoded pods of previous, an earlier list, which
// may be nil.
func encodePods(v *View, previous *encodedPodList, convert func(*v1.Pod) *v1.Pod) *encodedPodList {
	const begin, end = `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[`, "]}"
	list := &encodedPodList{view: v, pods: make(map[*PodView][]byte, len(v.Pods))}
	size := len(begin) + len(end)
	for _, p := range v.Pods {
		var text []byte
		if previous != nil {
			text = previous.pods[p]
		}
		if text == nil {
			text = encodePod(convert(p.Pod))
		}
		list.pods[p] = text
		size += len(text) + 1
	}
	list.body = append(make([]byte, 0, size), begin...)
	for i, p := range v.Pods {
		if i > 0 {
			list.body = append(list.body, ',')
		}
		at := len(list.body)
		list.body = append(list.body, list.pods[p]...)
		list.pods[p] = list.body[at:len(list.body):len(list.body)] // with a slice of the new body, the garbage collector can free the previous body
	}
	list.body = append(list.body, end...)
	return list
}

// encodePod encodes a pod. It cannot fail, because all fields have JSON types.
func encodePod(p *v1.Pod) []byte {
	podWithoutType := *p
	podWithoutType.TypeMeta = metav1.TypeMeta{}
	text, err := json.Marshal(&podWithoutType)
	if err != nil {
		panic("encoding a pod: " + err.Error())
	}
	return text
}
