//! HTML pages of indexes: each link is a file. Pure.

use std::collections::BTreeMap;

use tl::{HTMLTag, ParserOptions};
use url::Url;

use super::file::{File, Yanked, bounded, file_url, fragment_hashes, last_segment};
use super::filename::is_safe;

/// The files that a page links to.
///
/// # Errors
/// The page cannot be read.
pub(super) fn files(body: &[u8], base: &Url) -> Result<Vec<File>, String> {
    let text = String::from_utf8_lossy(body);
    let page = tl::parse(&text, ParserOptions::default())
        .map_err(|_| "the index answers with HTML that cannot be read".to_owned())?;
    let tags = || page.nodes().iter().filter_map(|node| node.as_tag());
    let named = |tag: &&HTMLTag<'_>, name: &[u8]| tag.name().as_bytes().eq_ignore_ascii_case(name);
    let base = tags()
        .find(|tag| named(tag, b"base"))
        .and_then(|tag| base.join(&attribute(tag, "href")?).ok())
        .unwrap_or_else(|| base.clone());
    Ok(bounded(tags().filter(|tag| named(tag, b"a")).filter_map(|tag| file(tag, &base))).collect())
}

fn file(tag: &HTMLTag<'_>, base: &Url) -> Option<File> {
    let address = attribute(tag, "href")?;
    let url = file_url(base, &address)?;
    let filename = last_segment(&url).filter(|name| is_safe(name))?;
    let metadata = attribute(tag, "data-core-metadata").or_else(|| attribute(tag, "data-dist-info-metadata"));
    Some(File {
        filename,
        url,
        hashes: address.split_once('#').map(|(_, hash)| fragment_hashes(hash)).unwrap_or_default(),
        requires_python: attribute(tag, "data-requires-python").filter(|text| !text.is_empty()),
        yanked: match attribute(tag, "data-yanked") {
            None => Yanked::No,
            Some(reason) if reason.is_empty() => Yanked::Yes,
            Some(reason) => Yanked::Because(reason),
        },
        uploaded: None,
        metadata: metadata.and_then(|text| match text.as_str() {
            "false" => None,
            "true" => Some(BTreeMap::new()),
            hash => Some(fragment_hashes(hash)),
        }),
    })
}

/// The value of an attribute, empty when it has none.
fn attribute(tag: &HTMLTag<'_>, name: &str) -> Option<String> {
    let value = tag.attributes().get(name)?;
    let text = value.map(|value| value.as_utf8_str().into_owned()).unwrap_or_default();
    let text = text.trim();
    Some(quick_xml::escape::unescape(text).map_or_else(|_| text.to_owned(), std::borrow::Cow::into_owned))
}
