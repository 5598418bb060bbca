package server

import (
	"encoding/json"
	"net/http"
	"sync"
	"weak"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodLists answers with the pods of Views as the kubelet encodes them: a
// v1.PodList that tells the type once, at the top. What is the same as in the
// list before is not encoded again; when nobody asks, nothing is kept for long.
// It may be used concurrently.
type PodLists struct {
	mu     sync.Mutex            // guards newest; who waits for it would encode the same
	newest weak.Pointer[podList] // so that it goes with the next garbage
}

// podList is the list of one View.
type podList struct {
	of   *View
	body []byte
	pods map[*PodView][]byte // parts of body
}

// Reply answers with the pods of v.
func (l *PodLists) Reply(w http.ResponseWriter, v *View) {
	l.reply(w, v, func(p *v1.Pod) v1.Pod { return *p })
}

// reply shows of each pod a copy with what may be seen; always the same.
func (l *PodLists) reply(w http.ResponseWriter, v *View, shown func(*v1.Pod) v1.Pod) {
	replyJSON(w, http.StatusOK, l.list(v, shown).body)
}

func (l *PodLists) list(v *View, shown func(*v1.Pod) v1.Pod) *podList {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.newest.Value()
	if before != nil && before.of == v {
		return before
	}
	now := encodePods(v, before, shown)
	l.newest = weak.Make(now)
	return now
}

// encodePods makes the list of v, with what it has in common with another, if any.
func encodePods(v *View, before *podList, shown func(*v1.Pod) v1.Pod) *podList {
	const begin, end = `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[`, "]}"
	list := &podList{of: v, pods: make(map[*PodView][]byte, len(v.Pods))}
	size := len(begin) + len(end)
	for _, p := range v.Pods {
		var text []byte
		if before != nil {
			text = before.pods[p]
		}
		if text == nil {
			text = encodePod(shown(p.Pod))
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
		list.pods[p] = list.body[at:len(list.body):len(list.body)] // frees the body before
	}
	list.body = append(list.body, end...)
	return list
}

// encodePod never fails: a pod is made of what JSON has.
func encodePod(p v1.Pod) []byte {
	p.TypeMeta = metav1.TypeMeta{}
	text, err := json.Marshal(&p)
	if err != nil {
		panic("encoding a pod: " + err.Error())
	}
	return text
}
