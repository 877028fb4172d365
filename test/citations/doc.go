// SPDX-License-Identifier: Apache-2.0

// Package citations checks that a reader of the repository can look up everything that its comments and documents refer
// to:
//
//   - a code of a decision, such as the one in "docs/decisions, W1", has a section in docs/decisions;
//   - comments cite codes in this form only, so that a reader who meets one knows where to look;
//   - a document that is named (docs/updates.md) is in the repository, and so is the heading or anchor behind a #;
//   - a test that a document names exists, and has the case behind a /;
//   - a proposal that is cited is listed in docs/decisions/README.md;
//   - the descriptions in the CRDs, which kubectl explain prints, state rules and cite no codes.
package citations
