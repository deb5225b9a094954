//! Facts about relatives and companions of the speaker.

use super::{about_user, is_value, subject};
use crate::l1::rules::{Speaker, Statement};

/// Relatives and companions whose plain facts are facts about the user's life.
pub(super) const KIN: &[&str] = &[
    "老婆", "妻子", "太太", "丈夫", "老公", "爸爸", "妈妈", "父亲", "母亲", "爸", "妈", "儿子", "女儿", "哥哥", "姐姐", "弟弟", "妹妹", "男朋友", "女朋友",
    "男友", "女友", "爷爷", "奶奶", "外公", "外婆", "姥姥", "姥爷", "叔叔", "阿姨", "舅舅", "姑姑", "表哥", "表弟", "表姐", "表妹", "堂哥", "堂弟", "堂姐",
    "堂妹", "侄子", "侄女", "外甥", "外甥女", "同事", "婶婶", "伯伯", "伯父", "舅妈", "姨妈", "姑父", "岳父", "岳母", "公公", "婆婆", "老板", "领导", "上司",
    "下属", "室友", "邻居", "朋友", "同学", "老师", "狗", "猫",
];

/// Returns the fact that a clause (after 我) states about a relative.
pub(super) fn kin(rest: &str, speaker: &Speaker<'_>) -> Option<Statement> {
    let who = subject(speaker);
    let rest = rest.strip_prefix('的').unwrap_or(rest);
    let relative = KIN.iter().filter(|relative| rest.starts_with(**relative)).max_by_key(|relative| relative.len())?;
    let after = &rest[relative.len()..];
    let after = after.strip_prefix(['都', '就', '也']).unwrap_or(after);
    let fact = |text: String, attribute: &str| {
        let attribute = (!attribute.is_empty()).then(|| format!("{relative}: {attribute}"));
        Some(Statement::fact(text, 65, attribute.as_deref()))
    };
    for (opening, verb, attribute) in KIN_VERBS {
        if let Some(value) = after.strip_prefix(opening).filter(|value| is_value(value)) {
            return fact(format!("{who}的{relative}{verb}{}。", about_user(value, who)), attribute);
        }
    }
    if let Some(place) = after.strip_prefix('在').and_then(|after| ["工作", "上班"].iter().find_map(|verb| after.strip_suffix(verb))) {
        return is_value(place).then(|| fact(format!("{who}的{relative}在{place}工作。"), "employer")).flatten();
    }
    if let Some(age) = after.trim_start_matches("今年").trim_end_matches('了').strip_suffix('岁') {
        let is_number = !age.is_empty() && age.chars().all(|c| c.is_ascii_digit() || "零一二三四五六七八九十百".contains(c));
        return is_number.then(|| fact(format!("{who}的{relative}{age}岁。"), "age")).flatten();
    }
    if let Some(place) = after.strip_prefix('是').and_then(|after| after.strip_suffix('人')).filter(|place| (2..=8).contains(&place.chars().count())) {
        return fact(format!("{who}的{relative}是{place}人。"), "origin");
    }
    let bare = after.strip_prefix('的').unwrap_or(after);
    let (name, attribute) = KIN_TRAITS.iter().find(|(name, _)| bare.starts_with(name))?;
    let value = bare[name.len()..].trim_start_matches("号码").trim_start_matches("地址");
    let value = ["就是", "是在", "叫做", "是", "在", "叫", "：", ":"].iter().find_map(|link| value.strip_prefix(link)).unwrap_or(value).trim_end_matches('的');
    is_value(value).then(|| fact(format!("{who}的{relative}的{}是{}。", name.trim_start_matches('过'), about_user(value, who)), attribute)).flatten()
}

/// What a relative does, the verb to tell it with, and the attribute.
const KIN_VERBS: &[(&str, &str, &str)] = &[
    ("名字叫", "叫", "name"),
    ("名叫", "叫", "name"),
    ("叫做", "叫", "name"),
    ("叫", "叫", "name"),
    ("住在", "住在", "home"),
    ("搬到了", "搬到了", "home"),
    ("搬到", "搬到了", "home"),
    ("来自", "来自", "origin"),
    ("喜欢", "喜欢", ""),
    ("不喜欢", "不喜欢", ""),
    ("讨厌", "讨厌", ""),
    ("爱吃", "爱吃", ""),
];

/// What a relative has, and the attribute; longer names first.
const KIN_TRAITS: &[(&str, &str)] = &[
    ("名字", "name"),
    ("邮箱", "email"),
    ("联系电话", "phone number"),
    ("电话", "phone number"),
    ("手机号", "phone number"),
    ("过生日", "birthday"),
    ("生日", "birthday"),
    ("身高", "height"),
    ("学历", "education"),
    ("老家", "origin"),
    ("家乡", "origin"),
    ("职业", "occupation"),
    ("爱好", "hobby"),
    ("单位", "employer"),
    ("公司", "employer"),
    ("工作的地方", "workplace"),
];
