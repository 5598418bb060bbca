package read

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"podd/server"
	"podd/server/kube/request"
	"podd/server/kube/resource"
)

func (h *Handler) get(w http.ResponseWriter, r *http.Request, res *resource.Definition, i request.Info) {
	f, err := resource.NewEncoder(r, h.now, request.AsTable, request.AsMetadata)
	if err != nil {
		server.ReplyStatus(w, err)
		return
	}
	e, err := h.Find(r.Context(), res, res.Key(i.Namespace, i.Name))
	if err != nil {
		server.ReplyStatus(w, err)
		return
	}
	entries, isDataRemoved := h.newSecretFilter(r, res, i).filterEntries([]*resource.Entry{e})
	if isDataRemoved {
		w.Header().Set("Warning", hiddenWarning)
	}
	server.ReplyJSON(w, http.StatusOK, f.Encode(entries[0], true))
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request, res *resource.Definition, i request.Info) {
	q := r.URL.Query()
	f, err := resource.NewEncoder(r, h.now, request.AsTable, request.AsMetadataList)
	if err == nil && q.Get("continue") != "" {
		err = apierrors.NewResourceExpired("continue tokens are not supported: every list is complete; list again without a continue token")
	}
	var entries []*resource.Entry
	var rev uint64
	if err == nil {
		entries, rev, err = h.Select(r.Context(), res, i.Namespace, q)
	}
	if err == nil {
		err = checkListRevision(q, rev)
	}
	if err != nil {
		server.ReplyStatus(w, err)
		return
	}
	entries, isDataRemoved := h.newSecretFilter(r, res, i).filterEntries(entries)
	if isDataRemoved {
		w.Header().Set("Warning", hiddenWarning)
	}
	server.ReplyJSON(w, http.StatusOK, f.EncodeList(res, entries, rev))
}
