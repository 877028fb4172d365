// SPDX-License-Identifier: Apache-2.0

package marks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// MinSecretLength is the minimum length of a secret, in bytes.
	MinSecretLength = 16
	// maxKeyIDLength is the maximum length of a key's id, in characters.
	maxKeyIDLength = 16
	// maxKeys is the maximum number of keys in use at the same time.
	maxKeys = 8
	// macSize is the length of a signature: HMAC-SHA256, truncated to 128 bits.
	macSize = 16
)

// Keys are the secrets with which marks are signed and verified. They are immutable, and safe for concurrent use. A
// nil Keys signs nothing and verifies nothing.
type Keys struct {
	current string
	secrets map[string][]byte // by id
}

// NewKeys returns keys by their ids. Marks are signed with the current key and verified with all of them, so that a
// key can be replaced while marks signed with it exist.
func NewKeys(current string, secrets map[string][]byte) (*Keys, error) {
	if _, ok := secrets[current]; !ok {
		return nil, fmt.Errorf("the current key %q is not among the keys", current)
	}
	if len(secrets) > maxKeys {
		return nil, fmt.Errorf("%d keys, more than %d", len(secrets), maxKeys)
	}
	k := &Keys{current: current, secrets: map[string][]byte{}}
	for id, secret := range secrets {
		if !isValidKeyID(id) {
			return nil, fmt.Errorf("%q is not a valid key id: 1 to %d letters, digits and dashes", id, maxKeyIDLength)
		}
		if len(secret) < MinSecretLength {
			return nil, fmt.Errorf("key %q has %d bytes, less than %d", id, len(secret), MinSecretLength)
		}
		k.secrets[id] = append([]byte(nil), secret...)
	}
	return k, nil
}

func isValidKeyID(id string) bool {
	if id == "" || len(id) > maxKeyIDLength {
		return false
	}
	for _, c := range id {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// Len returns the number of keys.
func (k *Keys) Len() int {
	if k == nil {
		return 0
	}
	return len(k.secrets)
}

// SignMark returns the text of a mark for one pod. It returns "" without a key, or for the zero Mark.
func (k *Keys) SignMark(pod types.UID, m Mark) string {
	if k == nil || m.IsZero() {
		return ""
	}
	signed := m.bodyText() + "/" + k.current
	return signed + "/" + base64.RawURLEncoding.EncodeToString(signature(k.secrets[k.current], pod, signed))
}

// VerifyMark returns the mark contained in a text, and whether it was signed with one of the keys for this pod.
func (k *Keys) VerifyMark(pod types.UID, text string) (Mark, bool) {
	id, signed, mac, ok := splitText(text)
	if !ok || k == nil {
		return Mark{}, false
	}
	secret, ok := k.secrets[id]
	if !ok {
		return Mark{}, false
	}
	got, err := base64.RawURLEncoding.Strict().DecodeString(mac)
	if err != nil || !hmac.Equal(got, signature(secret, pod, signed)) {
		return Mark{}, false
	}
	return parseMark(strings.Split(signed, "/"))
}

// LacksKeyOf reports whether the text has the form of a mark whose key is not among these keys. The keys may have
// changed since they were read.
func (k *Keys) LacksKeyOf(text string) bool {
	id, _, _, ok := splitText(text)
	if !ok || !isValidKeyID(id) {
		return false
	}
	return k == nil || k.secrets[id] == nil
}

// splitText returns the id of the key, the signed part of the text, and the signature. It does not copy the text.
func splitText(text string) (id, signed, mac string, ok bool) {
	if len(text) > MaxTextLength || strings.Count(text, "/") != fieldCount-1 {
		return "", "", "", false
	}
	end := strings.LastIndexByte(text, '/')
	signed, mac = text[:end], text[end+1:]
	return signed[strings.LastIndexByte(signed, '/')+1:], signed, mac, true
}

// signature returns the signature of a text for a pod. The length of the UID comes first, so that no two pairs of UID
// and text have the same input.
func signature(secret []byte, pod types.UID, signed string) []byte {
	h := hmac.New(sha256.New, secret)
	for _, part := range []string{"muster-mark/1/" + strconv.Itoa(len(pod)) + "/", string(pod), signed} {
		h.Write([]byte(part)) // a hash.Hash returns no error
	}
	return h.Sum(nil)[:macSize]
}
