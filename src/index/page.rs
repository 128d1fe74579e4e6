//! A project's page as an index answers it: JSON or HTML, turned into a list of files. Pure.
//!
//! A page is hostile. What cannot be a file is left out, as uv does; a page that is no page is an error.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use url::Url;

use super::file::{File, Yanked, bounded, checked, file_url};
use super::filename::is_safe;
use super::html;

/// What an index said about one project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    pub files: Vec<File>,
}

/// An answer of an index.
#[derive(Debug)]
pub(super) struct Answer {
    /// Where it came from in the end: addresses in it are relative to this.
    pub url: Url,
    pub content_type: String,
    pub body: Vec<u8>,
}

impl Page {
    /// Reads an answer.
    ///
    /// # Errors
    /// It is no page of an index; in words that hold no address.
    pub(super) fn parse(answer: &Answer) -> Result<Page, String> {
        let kind = answer.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let files = if kind.ends_with("json") {
            json(&answer.body, &answer.url)?
        } else if kind.ends_with("html") {
            html::files(&answer.body, &answer.url)?
        } else {
            return Err("the index answers with something that is not a page of files".to_owned());
        };
        Ok(Page { files })
    }
}

#[derive(Deserialize)]
struct JsonPage<F> {
    files: Vec<F>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct JsonFile<'a> {
    filename: String,
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(default)]
    hashes: BTreeMap<String, String>,
    requires_python: Option<String>,
    yanked: Option<JsonYanked>,
    #[serde(borrow)]
    upload_time: Option<Cow<'a, str>>,
    core_metadata: Option<JsonMetadata>,
    dist_info_metadata: Option<JsonMetadata>,
    data_dist_info_metadata: Option<JsonMetadata>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum JsonYanked {
    Flag(bool),
    Reason(String),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum JsonMetadata {
    Flag(bool),
    Hashes(BTreeMap<String, String>),
}

fn json(body: &[u8], base: &Url) -> Result<Vec<File>, String> {
    if let Ok(page) = serde_json::from_slice::<JsonPage<JsonFile<'_>>>(body) {
        return Ok(bounded(page.files).filter_map(|file| json_file(file, base)).collect());
    }
    // One that cannot be read does not hide the others.
    let page: JsonPage<&RawValue> = serde_json::from_slice(body)
        .map_err(|error| format!("the index answers with JSON that is not a page of files ({error})"))?;
    let files = bounded(page.files).filter_map(|raw| serde_json::from_str(raw.get()).ok());
    Ok(files.filter_map(|file| json_file(file, base)).collect())
}

fn json_file(file: JsonFile<'_>, base: &Url) -> Option<File> {
    let metadata = file.core_metadata.or(file.dist_info_metadata).or(file.data_dist_info_metadata);
    let url = file_url(base, &file.url)?;
    is_safe(&file.filename).then(|| File {
        filename: file.filename,
        hashes: checked(file.hashes),
        requires_python: file.requires_python,
        yanked: match file.yanked {
            Some(JsonYanked::Flag(true)) => Yanked::Yes,
            Some(JsonYanked::Reason(reason)) => Yanked::Because(reason),
            Some(JsonYanked::Flag(false)) | None => Yanked::No,
        },
        uploaded: file.upload_time.and_then(|time| time.parse().ok()),
        metadata: match metadata {
            Some(JsonMetadata::Flag(true)) => Some(BTreeMap::new()),
            Some(JsonMetadata::Hashes(hashes)) => Some(checked(hashes)),
            Some(JsonMetadata::Flag(false)) | None => None,
        },
        url,
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    const BASE: &str = "https://index.example/simple/foo/";

    fn page(content_type: &str, body: &str) -> Result<Page, String> {
        let answer = Answer {
            url: Url::parse(BASE).expect("an address"),
            content_type: content_type.to_owned(),
            body: body.as_bytes().to_vec(),
        };
        Page::parse(&answer)
    }

    fn json(body: &str) -> Vec<File> {
        page("application/vnd.pypi.simple.v1+json", body).expect("a page").files
    }

    fn html(body: &str) -> Vec<File> {
        page("text/html; charset=utf-8", body).expect("a page").files
    }

    #[test]
    fn json_pages_say_everything_about_a_file() {
        let hash = "AB".repeat(32);
        let files = json(&format!(
            r#"{{"meta": {{"api-version": "1.1"}}, "name": "foo", "unknown": [[]], "files": [
            {{"filename": "foo-1.tar.gz", "url": "https://files.example/p/foo-1.tar.gz#x", "hashes": {{"sha256": "{hash}"}},
             "requires-python": ">=3.8", "yanked": "broken", "upload-time": "2024-05-06T07:08:09.123456Z",
             "core-metadata": {{"sha256": "{hash}"}}, "size": 3}},
            {{"filename": "foo-1-py3-none-any.whl", "url": "../../f/foo-1-py3-none-any.whl", "hashes": {{}}, "yanked": false,
             "requires-python": null, "upload-time": null, "data-dist-info-metadata": true}}]}}"#
        ));
        let lower = BTreeMap::from([("sha256".to_owned(), hash.to_lowercase())]);
        assert_eq!(files[0].url.as_str(), "https://files.example/p/foo-1.tar.gz");
        assert_eq!((&files[0].hashes, &files[0].metadata), (&lower, &Some(lower.clone())));
        assert_eq!(files[0].requires_python.as_deref(), Some(">=3.8"));
        assert_eq!(files[0].yanked, Yanked::Because("broken".to_owned()));
        assert_eq!(files[0].uploaded.map(Timestamp::as_millisecond), Some(1_714_979_289_123));
        assert_eq!(files[0].key(), hash.to_lowercase());
        assert_eq!(files[1].url.as_str(), "https://index.example/f/foo-1-py3-none-any.whl");
        assert_eq!((&files[1].metadata, files[1].uploaded), (&Some(BTreeMap::new()), None));
        assert_eq!(files[1].yanked, Yanked::No);
        assert!(files[1].key().starts_with('u') && files[1].key().len() == 65);
    }

    #[test]
    fn html_pages_say_what_their_links_say() {
        let hash = "0".repeat(64);
        let files = html(&format!(
            "<!DOCTYPE html><html><head><meta name=x><base href='/files/'></head><body><h1>Links & more</h1>\n\
             <a href=\"foo-1%2Blocal.tar.gz#sha256={hash}\" data-requires-python=\"&gt;=3.6\" data-yanked=\"a &amp; b\">foo</a><br>\n\
             <A HREF='https://u:p@other.example/foo-1-py3-none-any.whl?token=1' data-core-metadata='sha256={hash}' data-yanked>x</A>\n\
             <a href=foo-2-py3-none-any.whl data-dist-info-metadata=true>y</a><a>no link</a><!-- <a href=foo-3.zip> -->"
        ));
        assert_eq!(files.len(), 3);
        assert_eq!(files[0].filename, "foo-1+local.tar.gz");
        assert_eq!(files[0].url.as_str(), "https://index.example/files/foo-1%2Blocal.tar.gz");
        assert_eq!(files[0].hashes, BTreeMap::from([("sha256".to_owned(), hash.clone())]));
        assert_eq!(files[0].requires_python.as_deref(), Some(">=3.6"));
        assert_eq!(files[0].yanked, Yanked::Because("a & b".to_owned()));
        assert_eq!(files[1].url.as_str(), "https://other.example/foo-1-py3-none-any.whl?token=1");
        assert_eq!(files[1].yanked, Yanked::Yes);
        assert_eq!(files[1].metadata, Some(BTreeMap::from([("sha256".to_owned(), hash)])));
        assert_eq!((&files[2].metadata, files[2].hashes.len()), (&Some(BTreeMap::new()), 0));
    }

    #[test]
    fn what_cannot_be_a_file_is_left_out() {
        let files = json(
            r#"{"files": [3, null, {"filename": "foo-1.zip"}, {"filename": 1e999, "url": "x"},
            {"filename": "../../etc/passwd", "url": "x"}, {"filename": "a\nb", "url": "x"}, {"filename": "", "url": "x"},
            {"filename": "foo-2.zip", "url": "file:///etc/passwd"}, {"filename": "foo-3.zip", "url": "ftp://host/x"},
            {"filename": "foo-4.zip", "url": "http://[bad"}, {"filename": "foo-5.zip", "url": "data:,x"},
            {"filename": "foo-6.zip", "url": "x", "yanked": 7},
            {"filename": "foo-7.zip", "url": "x", "hashes": {"sha256": "../../x", "md5": "0", "sha1": "00"},
             "upload-time": "99999999999-01-01T00:00:00Z", "size": 1e400}]}"#,
        );
        assert_eq!(files.iter().map(|file| file.filename.as_str()).collect::<Vec<_>>(), ["foo-7.zip"]);
        assert_eq!((files[0].hashes.len(), files[0].uploaded), (0, None));
        assert_eq!(
            html("<a href='%2e%2e%2fx'>x</a><a href='a/%ff.zip'>y</a><a href='/'>z</a><a href=javascript:x>"),
            []
        );
        assert_eq!(html(&"<div><a ".repeat(20_000)), []);
    }

    #[test]
    fn what_is_no_page_is_an_error_without_content() {
        let deep = "[".repeat(100_000);
        for (kind, body) in [
            ("application/vnd.pypi.simple.v1+json", "{}"),
            ("application/vnd.pypi.simple.v1+json", "not json s3cret"),
            ("application/vnd.pypi.simple.v1+json", deep.as_str()),
            ("application/octet-stream", "s3cret"),
            ("", ""),
        ] {
            let error = page(kind, body).expect_err("no page");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
