//! Chinese statements.

mod kin;

use super::dates::{self, Tense};
use super::sentence::Sentence;
use super::{Speaker, Statement};
use kin::KIN;

/// Words that make a sentence a question, a supposition or somebody's report.
const UNSURE: &[&str] = &[
    "吗", "什么", "哪里", "哪儿", "怎么", "为什么", "多少", "是谁", "是不是", "有没有", "能不能", "如果", "假如", "要是", "假设", "比如", "例如", "可能",
    "也许", "或许", "大概", "好像", "想象", "希望", "但愿", "据说", "听说", "以前", "曾经", "差点", "开玩笑", "歌词", "梦见", "梦到", "就算", "即使", "哪怕",
    "应该是", "他说", "她说", "他们说", "有人说", "不是吧",
];

/// What may stand before a statement without changing it.
const LEAD_INS: &[&str] = &[
    "你好", "您好", "嗨", "对了", "顺便说一下", "顺便说", "其实", "另外", "还有", "补充一下", "更正一下", "好的", "谢谢", "哈喽", "嗯", "哦", "请注意",
    "告诉你", "跟你说", "首先", "而且", "但是", "不过", "所以", "现在", "目前", "最近", "请记住", "记住", "请记得", "记一下", "帮我记一下", "帮我记住",
];

/// Returns whether what follows a sentence is material to work on.
pub(super) fn opens_material(sentence: &str) -> bool {
    const OPENINGS: &[&str] = &[
        "翻译", "润色", "改写", "总结", "概括", "把下面", "把以下", "将下面", "将以下", "写一篇", "写一首", "写一段", "写一个故事", "续写", "扮演", "假装",
        "想象你", "模仿", "以下是", "下面是", "检查语法", "修改下面",
    ];
    let text = ["请你", "请", "帮我", "帮忙", "你来", "现在"].iter().fold(sentence.trim(), |text, polite| text.strip_prefix(polite).unwrap_or(text));
    OPENINGS.iter().any(|opening| text.starts_with(opening))
}

/// Returns what a sentence plainly states.
pub(super) fn read(sentence: &Sentence, speaker: &Speaker<'_>) -> Vec<Statement> {
    let spoken = without_lead_ins(sentence.body()).trim_end_matches(['呢', '啊', '呀', '哦', '啦', '嘛', '哈', '喔']);
    let joined = one_subject(spoken);
    let body = joined.as_str();
    if UNSURE.iter().any(|word| body.contains(word)) {
        return Vec::new();
    }
    if let Some(rule) = instruction(body) {
        return vec![rule];
    }
    if let Some(event) = event(body, speaker) {
        return vec![event];
    }
    let mut statements = Vec::new();
    // A clause without a subject goes on about the one before it.
    let mut is_about_speaker = false;
    for clause in body.split(['，', ',', '、']) {
        let clause = without_lead_ins(clause);
        let rest = match clause.strip_prefix('我') {
            Some(rest) => {
                is_about_speaker = true;
                rest
            }
            None if is_about_speaker && !clause.starts_with(['他', '她', '它', '你', '这', '那']) => clause,
            None => {
                is_about_speaker = false;
                continue;
            }
        };
        if rest.starts_with('们') {
            is_about_speaker = false;
            continue;
        }
        let found = kin::kin(rest, speaker).or_else(|| fact(rest, speaker));
        // After "我妈妈住在北京" the subject is the mother.
        if KIN.iter().any(|relative| rest.trim_start_matches('的').starts_with(relative)) {
            is_about_speaker = false;
        }
        statements.extend(found);
    }
    statements
}

/// Returns 我的上司，他住在… as 我的上司住在…: a topic and its pronoun are one subject.
fn one_subject(text: &str) -> String {
    if let Some((topic, rest)) = text.split_once(['，', ','])
        && let Some(relative) = topic.strip_prefix('我')
        && KIN.contains(&relative.trim_start_matches('的'))
        && let Some(rest) = rest.strip_prefix(['他', '她', '它'])
    {
        return format!("{topic}{}", rest.strip_prefix('们').unwrap_or(rest));
    }
    text.to_owned()
}

fn without_lead_ins(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(rest) = LEAD_INS.iter().find_map(|lead_in| text.strip_prefix(lead_in)) {
        let rest = rest.trim_start_matches(['，', ',', '：', ':', '！', '!', '。', ' ']);
        if rest.is_empty() {
            break;
        }
        text = rest;
    }
    text
}

fn subject<'a>(speaker: &Speaker<'a>) -> &'a str {
    speaker.name.unwrap_or("用户")
}

/// What has one value at a time, after 我的.
const TRAITS: &[(&str, &str)] = &[
    ("名字", "name"),
    ("姓名", "name"),
    ("昵称", "nickname"),
    ("职业", "occupation"),
    ("工作", "occupation"),
    ("生日", "birthday"),
    ("电话", "phone number"),
    ("手机号", "phone number"),
    ("邮箱", "email"),
    ("地址", "home"),
    ("家乡", "origin"),
    ("老家", "origin"),
    ("血型", "blood type"),
    ("星座", "zodiac sign"),
    ("母语", "native language"),
    ("专业", "major"),
    ("爱好", "hobby"),
    ("身高", "height"),
    ("公司", "employer"),
    ("学校", "school"),
    ("时区", "time zone"),
];

fn fact(rest: &str, speaker: &Speaker<'_>) -> Option<Statement> {
    let who = subject(speaker);
    if let Some(after) = rest.strip_prefix("最喜欢的") {
        let (thing, value) = after.split_once('是')?;
        return (thing.chars().count() <= 8 && is_value(value))
            .then(|| Statement::fact(format!("{who}最喜欢的{thing}是{value}。"), 75, Some(&format!("favorite {thing}"))));
    }
    if let Some(after) = rest.strip_prefix('的') {
        let (name, attribute) = TRAITS.iter().find(|(name, _)| after.starts_with(name))?;
        let value = after[name.len()..].strip_prefix(['是', '叫', '在', '：', ':'])?;
        let priority = if *attribute == "name" { 90 } else { 75 };
        return is_value(value).then(|| Statement::fact(format!("{who}的{name}是{}。", about_user(value, who)), priority, Some(attribute)));
    }
    let plain = ["现在", "目前", "一直", "平时", "也", "还", "已经", "今年", "刚", "刚刚", "真的", "确实", "就", "是真的"]
        .iter()
        .fold(rest, |text, word| text.strip_prefix(word).unwrap_or(text));
    if let Some(name) = plain.strip_prefix("叫") {
        return (is_value(name) && name.chars().count() <= 12).then(|| Statement::fact(format!("{who}叫{name}。"), 90, Some("name")));
    }
    for opening in ["住在", "家在", "定居在", "搬到了", "搬到", "搬去了", "搬家到了", "搬家到"] {
        if let Some(place) = plain.strip_prefix(opening) {
            let verb = if opening.starts_with('搬') { "搬到了" } else { "住在" };
            return is_value(place).then(|| Statement::fact(format!("{who}{verb}{}。", about_user(place, who)), 80, Some("home")));
        }
    }
    if let Some(place) = plain.strip_prefix('在').and_then(|after| ["工作", "上班", "任职"].iter().find_map(|verb| after.strip_suffix(verb))) {
        return is_value(place).then(|| Statement::fact(format!("{who}在{place}工作。"), 80, Some("employer")));
    }
    if let Some(place) = ["入职了", "加入了", "跳槽到了", "跳槽到"].iter().find_map(|opening| plain.strip_prefix(opening)) {
        return is_value(place).then(|| Statement::fact(format!("{who}加入了{place}。"), 80, Some("employer")));
    }
    if let Some(place) = plain.strip_prefix("来自") {
        return is_value(place).then(|| Statement::fact(format!("{who}来自{place}。"), 75, Some("origin")));
    }
    if let Some(role) = plain.strip_prefix("是") {
        let counted = ["一名", "一个", "一位", "个", "名", "位"].iter().find_map(|word| role.strip_prefix(word));
        let bare = counted.unwrap_or(role);
        const ROLES: &[&str] = &[
            "师", "程序员", "医生", "护士", "学生", "研究生", "律师", "司机", "经理", "记者", "作家", "画家", "教授", "工程师", "会计", "警察", "军人",
            "公务员", "产品经理", "创始人", "店员", "演员",
        ];
        if bare.chars().count() <= 20 && ROLES.iter().any(|role| bare.ends_with(role)) {
            return Some(Statement::fact(format!("{who}是{bare}。"), 75, Some("occupation")));
        }
        if let Some(place) = bare.strip_suffix('人').filter(|place| (2..=6).contains(&place.chars().count()) && counted.is_none()) {
            return Some(Statement::fact(format!("{who}是{place}人。"), 75, Some("origin")));
        }
        return ["素食者", "素食主义者", "左撇子", "独生子", "独生女", "单身"].contains(&bare).then(|| Statement::fact(format!("{who}是{bare}。"), 70, None));
    }
    if let Some(age) = plain.strip_suffix("岁了").or_else(|| plain.strip_suffix('岁')) {
        let is_number = !age.is_empty() && age.chars().all(|c| c.is_ascii_digit() || "零一二三四五六七八九十百".contains(c));
        return is_number.then(|| Statement::fact(format!("{who}{age}岁。"), 70, Some("age")));
    }
    if let Some(thing) = plain.strip_prefix('对').and_then(|after| after.strip_suffix("过敏")) {
        return is_value(thing).then(|| Statement::fact(format!("{who}对{thing}过敏。"), 90, None));
    }
    for animal in ["养了", "养着"] {
        if let Some(pet) = plain.strip_prefix(animal) {
            return (is_value(pet) && ["只", "条", "匹", "盆", "缸"].iter().any(|unit| pet.contains(unit)))
                .then(|| Statement::fact(format!("{who}养了{pet}。"), 70, None));
        }
    }
    if let Some(kept) = plain.strip_prefix('有') {
        let counted = ["一", "两", "三", "四", "1", "2", "3"].iter().any(|number| kept.starts_with(number));
        let is_kin = KIN.iter().any(|relative| kept.ends_with(relative)) || kept.ends_with("孩子");
        return (counted && is_kin && kept.chars().count() <= 10).then(|| Statement::fact(format!("{who}有{kept}。"), 70, None));
    }
    for (opening, priority) in [("正在学习", 65), ("正在学", 65), ("在学", 65), ("会说", 70), ("会弹", 60), ("主要用", 60), ("平时用", 60), ("习惯用", 65)]
    {
        if let Some(thing) = plain.strip_prefix(opening) {
            return is_value(thing).then(|| Statement::fact(format!("{who}{opening}{}。", about_user(thing, who)), priority, None));
        }
    }
    liking(plain, who)
}

fn liking(text: &str, who: &str) -> Option<Statement> {
    let mut bare = text;
    let mut degree = "";
    for word in ["非常", "特别", "超级", "比较", "更", "很", "最", "超", "真"] {
        if let Some(rest) = bare.strip_prefix(word) {
            (bare, degree) = (rest, word);
            break;
        }
    }
    for (opening, priority) in [
        ("不太喜欢", 65),
        ("不喜欢", 70),
        ("不爱", 65),
        ("不吃", 80),
        ("不喝", 75),
        ("喜欢", 65),
        ("热爱", 70),
        ("讨厌", 70),
        ("偏爱", 65),
        ("偏好", 70),
        ("爱吃", 65),
        ("爱喝", 65),
        ("爱看", 65),
        ("爱听", 65),
        ("受不了", 65),
        ("害怕", 60),
    ] {
        if let Some(thing) = bare.strip_prefix(opening) {
            // 喜欢这个 and 喜欢你的建议 comment on the talk itself.
            return (is_value(thing) && !thing.starts_with('你'))
                .then(|| Statement::fact(format!("{who}{degree}{opening}{}。", about_user(thing, who)), priority, None));
        }
    }
    None
}

/// Returns whether a text can be the value of a fact.
fn is_value(text: &str) -> bool {
    let length = text.chars().count();
    (1..=60).contains(&length) && !["这", "那", "它", "你这", "他", "她", "的"].iter().any(|word| text.starts_with(word))
}

/// Returns a text in which the first person is the user.
fn about_user(text: &str, who: &str) -> String {
    text.replace('我', who)
}

fn instruction(body: &str) -> Option<Statement> {
    let rule = |text: &str| Some(Statement::rule(format!("{text}。")));
    let bare = ["请你", "请", "麻烦你", "麻烦"].iter().fold(body, |text, polite| text.strip_prefix(polite).unwrap_or(text)).trim_start_matches(['，', ',']);
    if let Some(name) = bare.strip_prefix("叫我").or_else(|| bare.strip_prefix("称呼我为")).or_else(|| bare.strip_prefix("你可以叫我")) {
        let is_name =
            is_value(name) && name.chars().count() <= 8 && !["妈", "爸", "们", "起床", "一声", "去", "来", "的"].iter().any(|word| name.starts_with(word));
        return is_name.then(|| Statement { attribute: Some("form of address".into()), ..Statement::rule(format!("称呼用户为{name}。")) });
    }
    for opening in ["以后", "今后", "从现在起", "从现在开始", "从今以后", "从今天起", "往后"] {
        let Some(after) = bare.strip_prefix(opening) else { continue };
        let after = after.trim_start_matches(['，', ',']);
        // 以后我想去北京 is a plan; an order speaks to the assistant.
        let orders = [
            "请", "都", "要", "不要", "别", "不用", "用", "你", "回答", "回复", "叫", "每次", "务必", "记得", "必须", "统一", "给我", "跟我", "对我", "一律",
            "只",
        ];
        return if orders.iter().any(|order| after.starts_with(order)) { rule(bare) } else { None };
    }
    for opening in ["总是", "始终", "永远", "务必", "一律"] {
        let Some(after) = bare.strip_prefix(opening) else { continue };
        let orders = ["用", "不要", "别", "使用", "先", "给", "回答", "回复", "保持", "以", "按", "把", "在回", "在代码", "记得", "检查", "附"];
        return if orders.iter().any(|order| after.starts_with(order)) { rule(bare) } else { None };
    }
    for opening in ["不要再", "别再", "千万不要", "千万别", "永远不要", "绝对不要", "绝不要"] {
        if bare.strip_prefix(opening).is_some_and(|after| !after.is_empty() && !after.starts_with(['说', '闹', '见'])) {
            return rule(bare);
        }
    }
    for opening in ["每次", "每当", "无论什么时候", "只要我", "当我"] {
        if bare.starts_with(opening)
            && bare
                .split(['，', ','])
                .skip(1)
                .any(|order| ["请", "都要", "要", "不要", "别", "先", "必须", "记得", "你"].iter().any(|word| order.starts_with(word)))
        {
            return rule(bare);
        }
    }
    // 每次回答都要…: the order stands in the same clause.
    if bare.starts_with("每次回") && ["都要", "都请", "请", "必须", "都用", "不要"].iter().any(|word| bare.contains(word)) {
        return rule(bare);
    }
    None
}

fn event(body: &str, speaker: &Speaker<'_>) -> Option<Statement> {
    let is_future = ["要", "将", "打算", "准备", "计划", "会"].iter().any(|word| body.contains(word)) && !body.contains('了');
    let dated = dates::chinese(body, speaker.today, if is_future { Tense::Future } else { Tense::Past })?;
    let before = body[..dated.place.0].trim_end_matches(['，', ',', ' ']);
    let after = body[dated.place.1..].trim_start_matches(['，', ',', ' ']);
    // Only what the first person does, with the date at the beginning: 我昨天…, 昨天我…, 下周三我要….
    let deed = match (before, before.strip_prefix('我')) {
        ("", _) => after.strip_prefix('我')?,
        (_, Some("" | "在" | "会在" | "将在" | "要在" | "打算" | "准备" | "计划")) => after,
        (_, Some("们" | "们在")) => return event_of(&format!("{}和同伴", subject(speaker)), after, dated, speaker),
        _ => return None,
    };
    match deed.strip_prefix('们') {
        Some(deed) => event_of(&format!("{}和同伴", subject(speaker)), deed, dated, speaker),
        None => event_of(subject(speaker), deed, dated, speaker),
    }
}

fn event_of(who: &str, deed: &str, dated: dates::Dated, speaker: &Speaker<'_>) -> Option<Statement> {
    if KIN.iter().any(|relative| deed.trim_start_matches('的').starts_with(relative))
        || deed.starts_with('的')
        || deed.chars().count() < 2
        || ["想", "觉得", "希望", "好累", "很累"].iter().any(|word| deed.starts_with(word))
    {
        return None;
    }
    let when = if dated.first == dated.last { dated.first.to_string() } else { format!("{}至{}", dated.first, dated.last) };
    Some(Statement::event(format!("{who}于{when}{}。", about_user(deed, subject(speaker))), dated))
}

#[cfg(test)]
mod tests {
    use crate::l1::rules::tests::all;

    fn texts(text: &str) -> Vec<String> {
        all(text).into_iter().map(|one| one.text).collect()
    }

    #[test]
    fn statements_become_facts() {
        for (said, facts) in [
            ("我叫李明，住在上海，在一家银行工作。", &["用户叫李明。", "用户住在上海。", "用户在一家银行工作。"][..]),
            ("我搬到北京了。", &["用户搬到了北京了。"]),
            ("对了，我对花生过敏！", &["用户对花生过敏。"]),
            ("我非常喜欢爬山。", &["用户非常喜欢爬山。"]),
            ("我不吃香菜。", &["用户不吃香菜。"]),
            ("我最喜欢的颜色是蓝色。", &["用户最喜欢的颜色是蓝色。"]),
            ("我是一名软件工程师。", &["用户是软件工程师。"]),
            ("我是四川人。", &["用户是四川人。"]),
            ("我今年三十岁了。", &["用户三十岁。"]),
            ("我的生日是5月3日。", &["用户的生日是5月3日。"]),
            ("我妈妈住在杭州。", &["用户的妈妈住在杭州。"]),
            ("我的表哥叫王强。", &["用户的表哥叫王强。"]),
            ("我表哥在南京上班呢。", &["用户的表哥在南京工作。"]),
            ("我的上司，他老家是昆明的。", &["用户的上司的老家是昆明。"]),
            ("我同事过生日是12月1号。", &["用户的同事的生日是12月1号。"]),
            ("我表弟今年20岁。", &["用户的表弟20岁。"]),
            ("我婶婶身高160厘米。", &["用户的婶婶的身高是160厘米。"]),
            ("我叔叔的邮箱地址是w@example.com。", &["用户的叔叔的邮箱是w@example.com。"]),
            ("我养了一只猫。", &["用户养了一只猫。"]),
            ("我有两个女儿。", &["用户有两个女儿。"]),
            ("我正在学吉他。", &["用户正在学吉他。"]),
        ] {
            assert_eq!(texts(said), facts, "{said}");
        }
        assert_eq!(all("我住在上海。")[0].attribute.as_deref(), Some("home"));
        assert_eq!(all("我搬到北京了。")[0].attribute.as_deref(), Some("home"));
    }

    #[test]
    fn standing_orders_and_events() {
        for (said, text) in [
            ("以后请用中文回答我。", "以后请用中文回答我。"),
            ("请始终用公制单位。", "始终用公制单位。"),
            ("不要再用表情符号了。", "不要再用表情符号了。"),
            ("每次我贴日志，请先总结。", "每次我贴日志，请先总结。"),
            ("请叫我小王。", "称呼用户为小王。"),
            ("我昨天去了医院。", "用户于2026-05-12去了医院。"),
            ("下周三我要去面试。", "用户于2026-05-20要去面试。"),
            ("上周末我们去爬山了。", "用户和同伴于2026-05-09至2026-05-10去爬山了。"),
        ] {
            assert_eq!(texts(said), [text], "{said}");
        }
    }

    #[test]
    fn what_is_no_statement_of_the_user_stays_out() {
        for said in [
            "我住在哪里？",
            "我是不是住在上海",
            "如果我住在上海，会怎样",
            "我可能住在上海。",
            "我以前住在上海。",
            "他说我住在上海。",
            "他住在上海。",
            "你住在上海。",
            "我朋友圈很热闹。",
            "我们住在一起。",
            "我不是医生。",
            "我喜欢这个。",
            "我喜欢你的建议。",
            "我有一个问题。",
            "我知道了。",
            "我想去北京。",
            "以后我想去北京。",
            "总是下雨。",
            "别再说了。",
            "叫我妈来。",
            "今天天气很好。",
            "昨天的构建失败了。",
            "我每周一开会。",
            "谢谢！",
            "《我住在北京》是一首歌。",
            "我的代码坏了。",
            "我的密码是123。",
            "明天我老板的公司开会。",
            "我呢？",
            "我朋友的密码是123。",
        ] {
            assert_eq!(texts(said), [""; 0], "{said}");
        }
    }
}
